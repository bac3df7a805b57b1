#include "app/print/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "app/words/readable.h"
#include "pipeline/memory/peaks.h"

namespace braid {
namespace {

constexpr double kRedraw = 0.1;                    // seconds between redraws of the line in place
constexpr double kPlainEvery = 30;                 // seconds between plain lines of a long phase
constexpr int kWidestBar = 30, kNarrowestBar = 8;  // columns

bool is_new_phase(const std::optional<Progress>& before, const Progress& now) {
  return !before || before->phase != now.phase || now.done < before->done ||
         now.first_picture != before->first_picture;
}

std::string title(Phase phase) {
  std::string text = phase_name(phase);
  return text + std::string(9 - text.size(), ' ');
}

std::string bar(double fraction, int columns) {
  const auto full = std::clamp(int(fraction * columns), 0, columns);
  return "[" + std::string(std::size_t(full), '#') + std::string(std::size_t(columns - full), '.') +
         "]  ";
}

std::string rate(const Progress& p, double seconds) {
  return readable_bytes(double(p.done) / std::max(seconds, 1e-6)) + "/s";
}

std::string time_each(const Progress& p, double seconds) {
  return readable_seconds(seconds / double(std::max<std::int64_t>(p.done, 1))) + "/it";
}

// "12.3 MB of 17.3 MB, 0.52 GB/s", "12/20 steps, 0.061 s/it, ETA 0:05"
std::string so_far(const Progress& p, double seconds) {
  const auto of_total = std::to_string(p.done) + "/" + std::to_string(p.total);
  const auto left = seconds / double(std::max<std::int64_t>(p.done, 1)) * double(p.total - p.done);
  switch (p.phase) {
    case Phase::kLoad:
      return readable_bytes(double(p.done)) + " of " + readable_bytes(double(p.total)) + ", " +
             rate(p, seconds);
    case Phase::kText:
      return of_total + " prompts";
    case Phase::kDenoise:
      if (p.done == 0) return of_total + " steps";
      return of_total + " steps, " + time_each(p, seconds) + ", ETA " + readable_wait(left);
    case Phase::kDecode:
      return of_total + " pictures";
  }
  return of_total;
}

// "17.3 MB in 0.033 s, 0.52 GB/s", "20 steps in 1.22 s, 0.061 s/it"
std::string in_all(const Progress& p, double seconds) {
  const auto time = " in " + readable_seconds(seconds);
  switch (p.phase) {
    case Phase::kLoad:
      return readable_bytes(double(p.done)) + time + ", " + rate(p, seconds);
    case Phase::kText:
      return plural(p.done, "prompt") + time;
    case Phase::kDenoise:
      return plural(p.done, "step") + time + ", " + time_each(p, seconds);
    case Phase::kDecode:
      return plural(p.done, "picture") + time;
  }
  return time;
}

std::string what_begins(const Progress& p) {
  if (p.phase == Phase::kLoad) return readable_bytes(double(p.total)) + " ...";
  return plural(p.total, "step") + " ...";
}

void write_to_standard_error(std::string_view text) {
  while (!text.empty()) {
    const auto n = ::write(STDERR_FILENO, text.data(), text.size());
    if (n <= 0) return;  // nowhere left to complain
    text.remove_prefix(std::size_t(n));
  }
}

int columns_of_standard_error() {
  winsize size{};
  const bool is_known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return is_known ? size.ws_col : 80;
}

Display display_of_standard_error() {
  const char* const terminal = std::getenv("TERM");
  const bool can_redraw = terminal && std::string_view(terminal) != "dumb";
  return can_redraw && ::isatty(STDERR_FILENO) ? Display::kTerminal : Display::kPlain;
}

double seconds_of_steady_clock() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

DisplayOptions display_on_standard_error(bool quiet) {
  return {.display = quiet ? Display::kSilent : display_of_standard_error(),
          .write = write_to_standard_error,
          .now = seconds_of_steady_clock,
          .columns = columns_of_standard_error};
}

ProgressDisplay::~ProgressDisplay() {
  if (is_line_in_place_) options_.write("\n");
}

void ProgressDisplay::show(const Progress& progress) {
  if (options_.display == Display::kSilent) return;
  const auto now = options_.now();
  if (is_new_phase(shown_, progress)) {
    finish();
    began_ = now;
    was_drawn_ = false;
  }
  shown_ = progress;
  if (progress.total == 0) return;
  if (options_.display == Display::kTerminal) return draw_in_place(now);
  write_now_and_then(now);
}

void ProgressDisplay::draw_in_place(double now) {
  const auto& p = *shown_;
  if (was_drawn_ && now - drawn_ < kRedraw && p.done < p.total) return;
  const auto text = pictures() + so_far(p, now - began_);
  const auto columns = options_.columns() - 1;  // a full line would wrap in some terminals
  const auto room = columns - int(title(p.phase).size() + text.size()) - 4;
  auto line = title(p.phase);
  if (room >= kNarrowestBar)
    line += bar(double(p.done) / double(p.total), std::min(room, kWidestBar));
  line += text;
  line.resize(std::min(line.size(), std::size_t(std::max(columns, 0))));
  options_.write("\r\x1b[K" + line);  // to the first column, erasing the line
  is_line_in_place_ = was_drawn_ = true;
  drawn_ = now;
}

void ProgressDisplay::write_now_and_then(double now) {
  const auto& p = *shown_;
  const bool is_long = p.phase == Phase::kLoad || p.phase == Phase::kDenoise;
  if (!is_long || (was_drawn_ && now - drawn_ < kPlainEvery)) return;
  write_line(was_drawn_ ? so_far(p, now - began_) : what_begins(p));
  was_drawn_ = true;
  drawn_ = now;
}

void ProgressDisplay::write_line(const std::string& line) {
  clear();
  options_.write(title(shown_->phase) + pictures() + line + "\n");
}

void ProgressDisplay::finish() {
  if (!shown_) return;
  write_line(in_all(*shown_, options_.now() - began_));
  shown_.reset();
}

void ProgressDisplay::say(const std::string& sentence) {
  if (options_.display == Display::kSilent) return;
  clear();
  options_.write("braid: " + one_line(sentence) + "\n");
}

void ProgressDisplay::clear() {
  if (is_line_in_place_) options_.write("\r\x1b[K");
  is_line_in_place_ = false;
}

// "picture 3 of 8, " if there are several.
std::string ProgressDisplay::pictures() const {
  const auto& p = *shown_;
  if (num_pictures_ == 1 || p.num_pictures == 0) return "";
  const auto first = p.first_picture + 1, last = p.first_picture + p.num_pictures;
  const auto which = first == last
                         ? "picture " + std::to_string(first)
                         : "pictures " + std::to_string(first) + "-" + std::to_string(last);
  return which + " of " + std::to_string(num_pictures_) + ": ";
}

}  // namespace braid
