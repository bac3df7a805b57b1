// Files that are truncated while they are mapped.
#pragma once

namespace braid {

// From now on, a read past the end of a mapped file, or a disk error under it, ends the program. It
// prints a sentence naming the file and exits with code 1, instead of crashing. Checkpoints stay
// mapped as long as the program runs.
void explain_bus_errors();

}  // namespace braid
