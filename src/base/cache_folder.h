// Where Braid keeps what it may make again.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace braid {

// The user's home: HOME, as it is, or what the system's password file says where that is unset, as
// for services. Neither: nullopt.
std::optional<std::string> home_folder();

// XDG_CACHE_HOME/braid/NAME, or ~/.cache/braid/NAME; empty without a home. Relative ones are none,
// as XDG's specification says. It need not exist.
std::filesystem::path cache_folder(const std::string& name);

}  // namespace braid
