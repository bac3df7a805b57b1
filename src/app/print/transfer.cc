#include "app/print/transfer.h"

#include <algorithm>

#include "app/words/readable.h"

namespace braid {
namespace {

constexpr double kRedrawTransfer = 0.1;  // seconds between redraws of the line in place
constexpr double kPlainLineEvery = 30;   // seconds between lines elsewhere
constexpr double kRateOver = 10;         // seconds

}  // namespace

double TransferDisplay::rate(double now) {
  const auto received = shown_->received;
  if (moments_.empty() || now - moments_.back().time > kRedrawTransfer)
    moments_.push_back({.time = now, .received = received});
  while (moments_.size() > 2 && now - moments_.front().time > kRateOver) moments_.pop_front();
  const auto& first = moments_.front();
  return double(received - first.received) / std::max(now - first.time, 1e-3);
}

void TransferDisplay::show(const net::PullProgress& progress) {
  if (options_.display == Display::kSilent) return;
  const auto now = options_.now();
  if (!shown_) {
    began_ = now;
    moments_ = {{.time = now, .received = 0}};
  }
  shown_ = progress;
  const auto every = options_.display == Display::kTerminal ? kRedrawTransfer : kPlainLineEvery;
  const auto since = was_drawn_ ? drawn_ : began_;
  if (now - since < every) return;
  const auto speed = rate(now);
  const auto left = progress.num_bytes - progress.bytes;
  draw(text_of(readable_bytes(double(progress.bytes)), " of ",
               readable_bytes(double(progress.num_bytes)), ", ", progress.files, "/",
               progress.num_files, " files, ", readable_bytes(speed), "/s",
               speed > 0 ? ", ETA " + readable_wait(double(left) / speed) : ""));
  drawn_ = now;
  was_drawn_ = true;
}

void TransferDisplay::draw(const std::string& text) {
  const auto line = "load     " + text;
  if (options_.display != Display::kTerminal) return options_.write(line + "\n");
  const auto columns = std::size_t(std::max(options_.columns() - 1, 0));
  options_.write("\r\x1b[K" + line.substr(0, columns));
  is_line_in_place_ = true;
}

void TransferDisplay::finish() {
  clear();
  if (options_.display == Display::kSilent || !shown_ || shown_->received == 0) return;
  const auto seconds = options_.now() - began_;
  options_.write("load     " + readable_bytes(double(shown_->received)) + " in " +
                 readable_seconds(seconds) + ", " +
                 readable_bytes(double(shown_->received) / std::max(seconds, 1e-3)) + "/s\n");
}

void TransferDisplay::say(const std::string& sentence) {
  if (options_.display == Display::kSilent) return;
  clear();
  options_.write("braid: " + one_line(sentence) + "\n");
}

void TransferDisplay::clear() {
  if (is_line_in_place_) options_.write("\r\x1b[K");
  is_line_in_place_ = false;
}

}  // namespace braid
