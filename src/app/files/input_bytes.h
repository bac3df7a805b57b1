// What a flag names to be read: a file, a pipe, or standard input.
#pragma once

#include <filesystem>
#include <string>

#include "app/flags/flags.h"

namespace braid {

enum class Terminal { kRefused, kRead };  // as standard input: what people type is text

// All bytes of a file or pipe; "-" is standard input. Throws InputError, beginning with `flag` for
// an address in the net, for a terminal, and for a pipe that only one of a launch's ranks has.
std::string read_input(const std::string& flag, const std::filesystem::path& path,
                       Terminal terminal = Terminal::kRefused);

// Throws InputError if `path` is an address in the net, such as "https://host/file".
void require_no_address(const std::string& flag, const std::filesystem::path& path);

// Throws InputError if several flags read standard input, which can be read once.
void require_one_reader_of_standard_input(const GenerateFlags& flags);

}  // namespace braid
