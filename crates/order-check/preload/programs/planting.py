"""The list of a file's programs, of which each is run by its name: `python3 FILE NAME planted`."""

import sys

PROGRAMS = {}


def planted(kind):
    def add(function):
        PROGRAMS[function.__name__] = (kind, function)
        return function

    return add


def run(settle):
    if sys.argv[1] == "--list":
        for name, (kind, _) in PROGRAMS.items():
            print(name, kind)
    else:
        PROGRAMS[sys.argv[1]][1](sys.argv[2] == "mended")
        settle()
