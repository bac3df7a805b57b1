// Runs of `braid`: arguments in, exit code and text out. Most are forks of the test, which already
// has LibTorch loaded: loading takes 0.3 s of a core, and there are hundreds of runs. Runs with a
// launcher or an environment start the program that users start.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace braid {

struct Finished {
  int exit_code = 0;  // minus the signal's number if one ended it
  std::string out, err;
};

struct Invocation {
  std::vector<std::string> arguments;
  std::vector<std::string> launcher = {};     // what comes before the program, a full path first
  std::vector<std::string> environment = {};  // NAME=value, added to the existing ones
  std::filesystem::path folder = ".";         // to work in
  std::string input = {};                     // what it finds on standard input
  bool from_shell = false;                    // starts the program though a fork would do
  bool keep_input_open = false;               // like a person who has not typed yet
  std::string out_file = {};                  // where standard output goes; empty: to the test
  bool close_out = false;                     // no standard output at all
  bool on_terminal = false;                   // standard error is a terminal
  std::optional<long> largest_file = {};      // bytes; a write beyond fails
};

// Whether the system has pseudo-terminals: a root folder without devpts has none, and tests that
// need one then say that they are skipped.
bool has_terminals();

// A running program, killed when the test is done with it.
class Subprocess {
 public:
  explicit Subprocess(const Invocation& start);
  Subprocess(const Subprocess&) = delete;
  Subprocess& operator=(const Subprocess&) = delete;
  ~Subprocess();

  // Waits until standard error holds `text`; false if the program ends first.
  bool wait_for(const std::string& text);
  const std::string& err() const { return finished_.err; }  // what was read so far
  // Waits until the program has taken all of its input, which stays open.
  void wait_until_input_is_read() const;
  void send(int signal) const;
  void close_out();  // like a reader that goes away
  Finished finish();
  // Does what finish() does, but reads what the program wrote only after its end, like a reader
  // that stalls.
  Finished finish_unread();

 private:
  bool read_some();

  pid_t pid_ = -1;
  int in_ = -1, out_ = -1, err_ = -1;
  Finished finished_;
};

Finished run_braid(std::vector<std::string> arguments, const std::filesystem::path& folder);
// The same by a shell's script, whose "$0" is the program and whose "$@" are its arguments.
Finished run_in_shell(const std::string& script, std::vector<std::string> arguments,
                      const std::filesystem::path& folder);

}  // namespace braid
