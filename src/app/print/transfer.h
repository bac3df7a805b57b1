// Shows what a download has reached: one line in place on a terminal, a few lines elsewhere.
#pragma once

#include <deque>

#include "app/print/progress.h"
#include "net/hub/pull.h"

namespace braid {

class TransferDisplay {
 public:
  explicit TransferDisplay(DisplayOptions options) : options_(std::move(options)) {}
  TransferDisplay(const TransferDisplay&) = delete;
  TransferDisplay& operator=(const TransferDisplay&) = delete;
  ~TransferDisplay() { clear(); }

  void show(const net::PullProgress& progress);
  void finish();  // says what was loaded, unless nothing was
  void say(const std::string& sentence);
  void clear();  // removes the line in place

 private:
  struct Moment {
    double time;
    std::uint64_t received;
  };
  double rate(double now);  // bytes per second, of the last seconds
  void draw(const std::string& text);

  DisplayOptions options_;
  std::optional<net::PullProgress> shown_;
  std::deque<Moment> moments_;
  double began_ = 0, drawn_ = 0;
  bool was_drawn_ = false, is_line_in_place_ = false;
};

}  // namespace braid
