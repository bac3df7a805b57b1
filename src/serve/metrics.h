// Counts and times in Prometheus' text format, version 0.0.4. Any thread may call any function.
// No label holds a prompt, a user or a job.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string>

#include "base/phases.h"
#include "serve/outcome.h"

namespace braid::serve {

// Counts of values up to each bound.
class Histogram {
 public:
  void add(double seconds);
  // Lines of samples; `labels`, for example `stage="text"`, may be empty.
  std::string samples(const std::string& name, const std::string& labels) const;

 private:
  // vLLM's bounds for requests, plus shorter ones for steps on GPUs.
  static constexpr std::array kBounds = {0.01, 0.03, 0.1,  0.3,  0.5,  0.8,   1.0,   1.5,
                                         2.0,  2.5,  5.0,  10.0, 15.0, 20.0,  30.0,  40.0,
                                         50.0, 60.0, 120., 240., 480., 960.0, 1920., 7680.};
  std::array<std::uint64_t, kBounds.size()> counts_{};
  std::uint64_t count_ = 0;
  double sum_ = 0;
};

std::uint64_t resident_bytes();  // of this process

class Metrics {
 public:
  void request_ended(Outcome outcome);  // or was refused
  void run_took(double seconds);        // a request that the engine has run, from its acceptance
  void waited(double seconds);
  void stage_took(Phase stage, double seconds);
  void step_took(double seconds);

  struct Gauges {
    int running = 0, waiting = 0, waiting_pictures = 0, connections = 0;
    bool is_ready = false;
    std::uint64_t resident_bytes = 0;
  };
  std::string text(const Gauges& gauges) const;

 private:
  mutable std::mutex mutex_;
  // All are there from the start: a rate over a sample that appears with its first count misses it.
  std::array<std::uint64_t, kOutcomes.size()> outcomes_{};
  Histogram request_, queue_, step_;
  std::array<Histogram, kPhases.size()> stages_;
};

}  // namespace braid::serve
