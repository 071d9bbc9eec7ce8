//! Nothing: the package has cudarc as a dependency, whose own tests `tools/suites` runs.
