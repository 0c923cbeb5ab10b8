#!/bin/sh
# Runs plot_test.py with the first Python that has matplotlib; exits with 77, "skipped", when there is none.
folder=$(dirname "$0")
for python in python3 /usr/bin/python3; do
  if "$python" -c 'import matplotlib' 2>/dev/null; then
    exec "$python" -B "$folder/plot_test.py"
  fi
done
echo "skipped: no python3 has matplotlib; deploy/install_packages.sh plot installs it"
exit 77
