// Shows progress: one line in place on a terminal, a few lines elsewhere.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "braid/braid.h"

namespace braid {

enum class Display { kTerminal, kPlain, kSilent };

// Where the lines go. Tests supply their own clock and sink.
struct DisplayOptions {
  Display display = Display::kSilent;
  std::function<void(std::string_view)> write = {};
  std::function<double()> now = {};   // seconds, from any origin
  std::function<int()> columns = {};  // of the terminal
};

// Standard error, in the form that suits it.
DisplayOptions display_on_standard_error(bool quiet);

class ProgressDisplay {
 public:
  explicit ProgressDisplay(DisplayOptions options) : options_(std::move(options)) {}
  ProgressDisplay(const ProgressDisplay&) = delete;
  ProgressDisplay& operator=(const ProgressDisplay&) = delete;
  ~ProgressDisplay();  // a line in place stays; later output starts a new one

  void expect_pictures(int count) { num_pictures_ = count; }  // in the whole run
  // `total` may be 0 while unknown.
  void show(const Progress& progress);
  void finish();                          // the last phase has ended
  void say(const std::string& sentence);  // a warning or a note, on its own line
  // Removes the line in place before something else writes to the terminal.
  void clear();

 private:
  void draw_in_place(double now);
  void write_now_and_then(double now);
  void write_line(const std::string& line);
  std::string pictures() const;

  DisplayOptions options_;
  int num_pictures_ = 1;
  std::optional<Progress> shown_;
  double began_ = 0, drawn_ = 0;  // when the phase began, and was last written about
  bool was_drawn_ = false;        // since the phase began
  bool is_line_in_place_ = false;
};

}  // namespace braid
