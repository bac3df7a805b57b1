// What changes when a launcher starts the program as one of several ranks.
#pragma once

#include <optional>
#include <string>

#include "comm/launch.h"

namespace braid {

// Whether this process is on its own or the first of its launch: the one that writes and prints.
// Throws InputError for an inconsistent launch.
bool is_first_rank();

// Whether a launcher started this process, possibly as one of several.
bool is_launched();

// "cuda" becomes the device with this rank's number on its host or, where the launcher shows each
// rank one GPU (srun --gpus-per-task=1, CUDA_VISIBLE_DEVICES set by a wrapper), that one; anything
// else stays. Throws InputError for a rank beyond the last visible GPU. The second form assumes so
// many visible ones; with none, the device is not found later.
std::string device_of_rank(const std::string& device);
std::string device_of_rank(const std::string& device, const std::optional<Launch>& launch,
                           std::size_t num_visible);

// The prefix of a complaint: "" or "rank 2: ".
std::string name_of_rank();

// Gives the first rank time to end first: launchers report the exit code of whichever ends first.
void let_first_rank_end();

}  // namespace braid
