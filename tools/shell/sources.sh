# What a build is made from. Sourced.

# source_list [FOLDER...]: path, size and time of each source of the program, and of those in more folders. A build is of
# a list, not of a time: an archive brings files that are older than the build they are to change, and a copy or a
# container's image may bring them all anew.
source_list() {
  (cd "$root" && find CMakeLists.txt src include cmake "$@" -type f -printf '%p %s %T@\n' | LC_ALL=C sort)
}

# The same of LibTorch's own description, which changes with its version.
torch_list() { (cd "$torch/share/cmake/Torch" && find . -type f -printf '%p %s %T@\n' | LC_ALL=C sort); }
