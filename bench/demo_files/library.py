"""A small lending library: who has which book, and until when."""
import csv
import datetime
import json

LOAN_DAYS = 14
MAX_LOANS = 5
DATA_FILE = "library.json"


class LibraryError(Exception):
    """A request that the library cannot fulfil."""


class Book:
    def __init__(self, isbn, title, author, copies=1):
        self.isbn = isbn
        self.title = title
        self.author = author
        self.copies = copies

    def as_row(self):
        return [self.isbn, self.title, self.author, self.copies]


class Loan:
    def __init__(self, isbn, reader, due):
        self.isbn = isbn
        self.reader = reader
        self.due = due

    def is_late(self, today):
        return today > self.due


class Library:
    def __init__(self, path=DATA_FILE):
        self.path = path
        self.books = {}
        self.loans = []

    def load(self):
        with open(self.path) as source:
            data = json.load(source)
        for row in data["books"]:
            self.books[row["isbn"]] = Book(**row)

    def save(self):
        rows = [vars(book) for book in self.books.values()]
        with open(self.path, "w") as target:
            json.dump({"books": rows}, target, indent=2)

    def add_book(self, book):
        if book.isbn in self.books:
            self.books[book.isbn].copies += book.copies
        else:
            self.books[book.isbn] = book

    def loans_of(self, reader):
        return [loan for loan in self.loans if loan.reader == reader]

    def free_copies(self, isbn):
        lent = sum(1 for loan in self.loans if loan.isbn == isbn)
        return self.books[isbn].copies - lent

    def lend(self, isbn, reader, today):
        if isbn not in self.books:
            raise LibraryError("no such book")
        if len(self.loans_of(reader)) >= MAX_LOANS:
            raise LibraryError("too many loans")
        if self.free_copies(isbn) == 0:
            raise LibraryError("all copies are lent")
        due = today + datetime.timedelta(days=LOAN_DAYS)
        self.loans.append(Loan(isbn, reader, due))
        return due

    def give_back(self, isbn, reader):
        for loan in self.loans_of(reader):
            if loan.isbn == isbn:
                self.loans.remove(loan)
                return loan
        raise LibraryError("not lent to this reader")

    def late_loans(self, today):
        return [loan for loan in self.loans if loan.is_late(today)]

    def export(self, path):
        with open(path, "w", newline="") as target:
            writer = csv.writer(target)
            writer.writerow(["isbn", "title", "author", "copies"])
            for book in self.books.values():
                writer.writerow(book.as_row())


def report(library, today):
    for loan in library.late_loans(today):
        title = library.books[loan.isbn].title
        print(f"{loan.reader}: {title} was due on {loan.due}")
