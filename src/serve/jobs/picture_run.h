// One engine call for a job: its progress becomes the job's events, and is timed.
#pragma once

#include <functional>
#include <optional>

#include "serve/backend.h"
#include "serve/jobs/job.h"
#include "serve/jobs/pace.h"
#include "serve/metrics.h"

namespace braid::serve {

class PictureRun {
 public:
  using StepTook = std::function<void(int pictures, double seconds)>;
  using SecondsLeft = std::function<std::optional<double>(int first, int step)>;

  // `request` is the job's, with its pictures.
  PictureRun(Job& job, const Request& request, Metrics& metrics, StepTook step_took,
             SecondsLeft seconds_left)
      : job_(job),
        request_(request),
        metrics_(metrics),
        step_took_(std::move(step_took)),
        seconds_left_(std::move(seconds_left)) {}

  // Throws what the engine does; Cancelled also if every picture was skipped.
  void draw(const Backend& backend);

  // Call after the engine's return: seconds per round, without its steps and the model's load.
  double finish();

 private:
  Hooks hooks(const Backend& backend, std::stop_token stop);
  void leave_out_round();
  void take(const Backend& backend, Picture& picture);
  std::string file_of(const Backend& backend, const Picture& picture) const;
  void advance(const Progress& at);
  void enter(Phase phase, Clock::time_point now);

  Job& job_;
  const Request& request_;
  Metrics& metrics_;
  StepTook step_took_;
  SecondsLeft seconds_left_;
  Clock::time_point began_ = Clock::now(), entered_ = began_, stepped_ = began_;
  std::optional<Phase> phase_;
  int steps_ = steps_taken(request_);  // of each picture; the engine says how many these are
  double seconds_of_steps_ = 0, seconds_of_load_ = 0;
  int rounds_ = 0;
  int first_ = 0;                 // picture of the call of the engine
  int round_ = 0, in_round_ = 1;  // first picture that is being drawn, and how many are
};

}  // namespace braid::serve
