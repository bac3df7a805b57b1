# What a build is made from. Sourced.

# hashed FIND-ARGUMENT...: the files with their contents' hashes.
hashed() { find "$@" -type f -print0 | xargs -0 sha1sum | LC_ALL=C sort; }

# source_list [FOLDER...]: the program's sources, and those in more folders. A build is of contents, not of times: an
# archive brings files that are older than the build they are to change, a container's image cuts times to seconds.
source_list() { (cd "$root" && hashed CMakeLists.txt src include cmake "$@"); }

# The same of LibTorch's own description, which changes with its version.
torch_list() { (cd "$torch/share/cmake/Torch" && hashed .); }
