// What changes when a launcher starts the program as one of several ranks.
#pragma once

#include <exception>
#include <string>

namespace braid {

// Whether this process is on its own or the first of its launch: the one that writes and prints.
// True if the launcher's variables cannot be read: what needs them complains.
bool is_first_rank();

// The prefix of a complaint: "" or "rank 2: ".
std::string name_of_rank();

// Tells the other ranks what ended this one, if it has not met them yet. Returns whether the first
// rank tells people of the same.
bool is_told_by_first_rank(const std::exception_ptr& failure);

// Gives the first rank time to end first: launchers report the exit code of whichever ends first.
void let_first_rank_end();

}  // namespace braid
