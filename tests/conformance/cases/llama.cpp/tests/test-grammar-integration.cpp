// Two cases in the form of llama.cpp's tests; nothing compiles this file.
static void test_grammar(const std::string & name, const std::string & grammar);

static void test_some() {
    test_grammar(
        "sums",
        R"""(
            root ::= [0-9]+ ("+" [0-9]+)*)""",
        // These match,
        {
            "1+2",  // "a comment"
            "12" "3",
            token(10) + "computed",
        },
        // and these do not.
        { "+", "1+", "line\n" }
    );
    test_schema("flag", R"""({"type": "boolean"})""", { "true", R"""(false)""" }, { "1", "\"true\"", "True" });
}
