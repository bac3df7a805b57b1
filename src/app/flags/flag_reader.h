// CLI11 behind a few calls: how flags are declared, and its complaints in our words.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/flags/flags.h"

namespace CLI {
class App;
}

namespace braid {

// The flags of one command. What they hold is read by finish(), once the whole line is understood,
// so that --help and unknown flags come before complaints about values.
class FlagReader {
 public:
  using Read = std::function<void(const std::string& flag, const std::string& text)>;

  explicit FlagReader(CLI::App& command);

  void text(const std::string& names, const std::string& value, const std::string& group,
            const std::string& help, Read read);
  // The same for a flag that may be given several times; `read` is called for each.
  void texts(const std::string& names, const std::string& value, const std::string& group,
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

  // As if the line went on with `flag` and this text. Complaints name `said`, where it stands.
  // Throws InputError unless the command has such a flag with a value.
  void read_also(const std::string& flag, const std::string& said, const std::string& text);

  // Long names of the flags with values that the line has, "--tp".
  const std::set<std::string>& given() const { return given_; }

 private:
  CLI::App& command_;
  std::vector<std::function<void()>> reads_;
  std::map<std::string, Read> known_;
  std::set<std::string> given_;
};

// Parses the line. Text comes back when that is all there is to do: help or the version.
// Throws InputError.
std::optional<ShowText> parse_with(CLI::App& app, int argc, const char* const* argv);

}  // namespace braid
