// Files that are cut short while they are mapped.
#pragma once

namespace braid {

// From now on a read behind the end of a mapped file, or one that its disk fails, ends the program
// with a sentence that names the file, and exit code 1, instead of a crash. A checkpoint is read
// where it lies for as long as the program runs.
void explain_bus_errors();

}  // namespace braid
