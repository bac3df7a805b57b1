// Runs of `braid`: arguments in, exit code and text out. Most are forks of the test, which has
// LibTorch loaded already: that takes 0.3 s of a core, and there are hundreds of runs. Those with a
// launcher or an environment start the program that users start.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace braid {

struct Finished {
  int exit_code = 0;  // minus the signal's number where that ended it
  std::string out, err;
};

struct Invocation {
  std::vector<std::string> arguments;
  std::vector<std::string> launcher = {};     // what comes before the program, a full path first
  std::vector<std::string> environment = {};  // NAME=value, besides what is there
  std::filesystem::path folder = ".";         // to work in
  std::string input = {};                     // what it finds on standard input
  bool from_shell = false;                    // the program, though a fork would do
  bool keep_input_open = false;               // as a person who has not typed yet
  std::string out_file = {};                  // where standard output goes; empty: to the test
  bool close_out = false;                     // no standard output at all
  bool on_terminal = false;                   // standard error is a terminal
  std::optional<long> largest_file = {};      // bytes; a write beyond fails
};

// A program that is running. Ended by force when the test is done with it.
class Subprocess {
 public:
  explicit Subprocess(const Invocation& start);
  Subprocess(const Subprocess&) = delete;
  Subprocess& operator=(const Subprocess&) = delete;
  ~Subprocess();

  // Until standard error holds `text`; false when the program ends before.
  bool wait_for(const std::string& text);
  const std::string& err() const { return finished_.err; }  // what was read so far
  void send(int signal) const;
  void close_out();  // as a reader that goes away
  Finished finish();

 private:
  bool read_some();

  pid_t pid_ = -1;
  int in_ = -1, out_ = -1, err_ = -1;
  Finished finished_;
};

Finished run_braid(std::vector<std::string> arguments, const std::filesystem::path& folder);

}  // namespace braid
