#include "serve/metrics.h"

#include <unistd.h>

#include <array>
#include <charconv>
#include <fstream>

#include "base/error.h"

namespace braid::serve {
namespace {

std::string heading(const std::string& name, const std::string& type, const std::string& help) {
  return "# HELP " + name + " " + help + "\n# TYPE " + name + " " + type + "\n";
}

// Writes just the digits that tell it from others: sums that grow for months are subtracted from
// each other.
std::string exact(double value) {
  std::array<char, 32> text;
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

template <class Number>
std::string gauge(const std::string& name, const std::string& help, Number value,
                  const std::string& labels = "") {
  return heading(name, "gauge", help) + text_of(name, labels, " ", value, "\n");
}

}  // namespace

// The second number of /proc/self/statm, in pages.
std::uint64_t resident_bytes() {
  std::uint64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * std::uint64_t(::sysconf(_SC_PAGESIZE));
}

void Histogram::add(double seconds) {
  for (std::size_t i = 0; i < kBounds.size(); ++i)
    if (seconds <= kBounds[i]) ++counts_[i];
  ++count_;
  sum_ += seconds;
}

std::string Histogram::samples(const std::string& name, const std::string& labels) const {
  const auto comma = labels.empty() ? "" : ",";
  const auto braces = labels.empty() ? "" : "{" + labels + "}";
  std::string lines;
  for (std::size_t i = 0; i < kBounds.size(); ++i)
    lines +=
        text_of(name, "_bucket{", labels, comma, "le=\"", kBounds[i], "\"} ", counts_[i], "\n");
  lines += text_of(name, "_bucket{", labels, comma, "le=\"+Inf\"} ", count_, "\n");
  return lines + text_of(name, "_sum", braces, " ", exact(sum_), "\n", name, "_count", braces, " ",
                         count_, "\n");
}

void Metrics::request_ended(Outcome outcome) {
  const std::scoped_lock lock(mutex_);
  ++outcomes_.at(std::size_t(outcome));
}

void Metrics::run_took(double seconds) {
  const std::scoped_lock lock(mutex_);
  request_.add(seconds);
}

void Metrics::waited(double seconds) {
  const std::scoped_lock lock(mutex_);
  queue_.add(seconds);
}

void Metrics::stage_took(Phase stage, double seconds) {
  const std::scoped_lock lock(mutex_);
  stages_.at(std::size_t(stage)).add(seconds);
}

void Metrics::step_took(double seconds) {
  const std::scoped_lock lock(mutex_);
  step_.add(seconds);
}

std::string Metrics::text(const Gauges& gauges) const {
  const std::scoped_lock lock(mutex_);
  auto text =
      gauge("braid_ready", "1 while requests are taken.", int(gauges.is_ready)) +
      gauge("braid_requests_running", "Requests whose pictures are being made.", gauges.running) +
      gauge("braid_requests_waiting", "Requests in the queue.", gauges.waiting) +
      gauge("braid_pictures_waiting", "Pictures in the queue.", gauges.waiting_pictures) +
      gauge("braid_connections", "Open connections.", gauges.connections) +
      gauge("braid_memory_bytes", "Memory that is resident.", gauges.resident_bytes,
            "{device=\"host\"}");
  text += heading("braid_requests_total", "counter", "Requests for pictures by how they ended.");
  for (const auto outcome : kOutcomes)
    text += text_of("braid_requests_total{outcome=\"", outcome_name(outcome), "\"} ",
                    outcomes_.at(std::size_t(outcome)), "\n");
  text += heading("braid_request_seconds", "histogram",
                  "From acceptance to the end, of requests that the engine has run.") +
          request_.samples("braid_request_seconds", "");
  text += heading("braid_queue_seconds", "histogram", "From acceptance to the start.") +
          queue_.samples("braid_queue_seconds", "");
  text += heading("braid_step_seconds", "histogram", "One denoising step.") +
          step_.samples("braid_step_seconds", "");
  text += heading("braid_stage_seconds", "histogram", "A stage of a request.");
  for (const auto stage : kPhases)
    text += stages_.at(std::size_t(stage))
                .samples("braid_stage_seconds", text_of("stage=\"", phase_name(stage), "\""));
  return text;
}

}  // namespace braid::serve
