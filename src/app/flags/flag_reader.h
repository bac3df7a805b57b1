// A thin layer over CLI11: declares flags, and words its complaints.
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

// The flags of one command. Their values are read by finish(), once the whole line is parsed, so
// that --help and unknown flags come before complaints about values.
class FlagReader {
 public:
  using Read = std::function<void(const std::string& flag, const std::string& text)>;

  explicit FlagReader(CLI::App& command);

  void text(const std::string& names, const std::string& value, const std::string& group,
            const std::string& help, Read read);
  // The same for a flag that may be given several times, each with one value; `read` is called for
  // each.
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
  void positional(const std::string& name, const std::string& help, std::string& text);

  // Throws InputError for flags and arguments the command does not have.
  void finish();

  // Acts as if the line continued with `flag` and this text. Complaints name `said`, the flag that
  // contains it. Throws InputError unless the command has such a flag with a value.
  void read_also(const std::string& flag, const std::string& said, const std::string& text);

  // What a flag with several long names is usually called: "--pp" for "--layer-split".
  std::string usual_name(const std::string& flag) const;

  // Usual long names of the flags given with a value: "--tp".
  const std::set<std::string>& given() const { return given_; }

 private:
  struct Known {
    std::string usual;  // of the flag's long names
    Read read;
  };

  // Returns the flag's usual name.
  std::string know(const std::string& names, const Read& read);

  CLI::App& command_;
  std::vector<std::function<void()>> reads_;
  std::map<std::string, Known> known_;  // by each long name
  std::set<std::string> given_;
};

// Parses the line. Returns a text if showing it is all there is to do: help or the version.
// Throws InputError.
std::optional<ShowText> parse_with(CLI::App& app, int argc, const char* const* argv);

}  // namespace braid
