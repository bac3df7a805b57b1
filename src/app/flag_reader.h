// CLI11 behind a few calls: how flags are declared, and its complaints in our words.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/flags.h"

namespace braid {

// The flags of one command. What they hold is read by finish(), once the whole line is understood,
// so that --help and unknown flags come before complaints about values.
class FlagReader {
 public:
  using Read = std::function<void(const std::string& flag, const std::string& text)>;

  explicit FlagReader(CLI::App& command);

  void text(const std::string& names, const std::string& value, const std::string& group,
            const std::string& help, Read read);
  void path(const std::string& names, const std::string& value, const std::string& group,
            const std::string& help, std::filesystem::path& path);
  void flag(const std::string& names, const std::string& group, const std::string& help,
            bool& flag);
  void action(const std::string& names, const std::string& group, const std::string& help,
              std::function<void()> act);
  void positional(const std::string& name, const std::string& help,
                  std::optional<std::string>& text);

  // Throws InputError for flags and arguments that the command does not have.
  void finish();

 private:
  CLI::App& command_;
  std::vector<std::function<void()>> reads_;
};

// Parses the line. Text comes back when that is all there is to do: help or the version.
// Throws InputError.
std::optional<ShowText> parse_with(CLI::App& app, int argc, const char* const* argv);

}  // namespace braid
