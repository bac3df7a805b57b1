// What the program does differently when a launcher started it as one rank of several.
#pragma once

#include <string>

namespace braid {

// Whether this process is on its own or the first of its launch: the one that writes and prints.
// Throws InputError for a launch that makes no sense.
bool is_first_rank();

// Whether a launcher started this process, which is one of several or may be.
bool is_launched();

// "cuda" becomes the device with this rank's number on its host; anything else stays.
std::string device_of_rank(const std::string& device);

// What goes before a complaint: "" or "rank 2: ".
std::string name_of_rank();

// Returns when the first rank has had time to end: launchers report the code of whoever ends first.
void let_first_rank_end();

}  // namespace braid
