#include "serve/jobs/job.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/hexadecimal.h"
#include "base/json.h"
#include "base/random_bits.h"
#include "serve/jobs/pace.h"

namespace braid::serve {

const char* state_name(JobState state) {
  switch (state) {
    case JobState::kQueued:
      return "queued";
    case JobState::kRunning:
      return "running";
    case JobState::kDone:
      return "done";
    case JobState::kFailed:
      return "failed";
    case JobState::kCancelled:
      return "cancelled";
  }
  return "";
}

std::string random_id() { return hex_digits(random_bits()) + hex_digits(random_bits()); }

namespace {

// Leaves what answers say of them.
PicturesIn taken_pictures(PicturesIn& in) {
  auto all = std::exchange(in, {});
  in.strength = all.strength;
  in.resolution = all.resolution;
  return all;
}

std::size_t bytes_of(const PicturesIn& pictures) {
  const auto of = [](const Pixels& one) { return one.rgb.size() + one.alpha.size(); };
  const auto of_any = [&](const std::optional<Pixels>& one) { return one ? of(*one) : 0; };
  std::size_t bytes = of_any(pictures.init) + of_any(pictures.mask);
  for (const auto& control : pictures.controls) bytes += of(control.picture);
  for (const auto& reference : pictures.references) bytes += of(reference);
  return bytes;
}

}  // namespace

Json made_json(const MadePicture& picture) {
  Json json = {{"seed", picture.seed}, {"width", picture.width}, {"height", picture.height}};
  if (picture.num_frames == 1) return json;
  if (picture.frames_per_second == 0) {
    json["layer"] = picture.frame;
    json["layers"] = picture.num_frames;
    return json;
  }
  json["frame"] = picture.frame;
  json["frames"] = picture.num_frames;
  json["frames_per_second"] = picture.frames_per_second;
  return json;
}

Job::Job(std::string id, Order order)
    : id_(std::move(id)),
      pictures_(taken_pictures(order.request.pictures)),
      num_input_bytes_(bytes_of(pictures_)),
      order_(std::move(order)) {
  status_.warnings = order_.warnings;
  status_.steps = steps_taken(order_.request);
  publish("queued", {{"id", id_}, {"pictures", num_pictures()}});
  for (const auto& sentence : status_.warnings) publish("warning", {{"message", sentence}});
}

Request Job::take_request() {
  auto request = order_.request;
  const std::scoped_lock lock(mutex_);
  request.pictures = std::exchange(pictures_, {});
  return request;
}

Job::Status Job::status() const {
  const std::scoped_lock lock(mutex_);
  return status_;
}

std::size_t Job::num_bytes() const {
  std::size_t bytes = 0;
  for (const auto& picture : status().pictures) bytes += picture.file->size();
  return bytes;
}

void Job::start() {
  const std::scoped_lock lock(mutex_);
  status_.state = JobState::kRunning;
  status_.started = Clock::now();
  publish("started", Json::object());
}

void Job::advance(const std::string& phase, int step, int steps, std::optional<double> eta) {
  const std::scoped_lock lock(mutex_);
  status_.phase = phase;
  status_.step = step;
  status_.steps = steps;
  status_.eta = eta;
  const int files = int(status_.pictures.size()) + status_.num_unfinished + status_.num_skipped;
  publish("progress", {{"phase", phase},
                       {"step", step},
                       {"steps", steps},
                       {"picture", files},
                       {"pictures", num_pictures()},
                       {"eta", eta ? Json(*eta) : Json()}});
}

void Job::preview(int picture, int step, FileBytes file) {
  const std::scoped_lock lock(mutex_);
  drop_previews(picture, step);
  publish("preview", {{"picture", picture}, {"step", step}, {"steps", status_.steps}},
          std::move(file));
  events_.back().picture = picture;
  events_.back().step = step;
}

// Pictures that are drawn together are at the same step; those before them were at a later one.
void Job::drop_previews(int picture, int step) {
  std::erase_if(events_, [&](const Event& event) {
    return event.name == "preview" && (event.picture == picture || event.step > step);
  });
}

void Job::add(MadePicture picture) {
  const std::scoped_lock lock(mutex_);
  const int files = picture.num_frames;
  unfinished_.push_back(std::move(picture));
  status_.num_unfinished = int(unfinished_.size());
  if (status_.num_unfinished < files) return;
  for (auto& made : unfinished_) {
    auto data = made_json(made);
    data["picture"] = int(status_.pictures.size());
    const auto file = made.file;
    status_.pictures.push_back(std::move(made));
    publish("picture", data, file);
  }
  drop_unfinished();
}

void Job::drop_unfinished() {
  unfinished_.clear();
  status_.num_unfinished = 0;
}

void Job::skip(int pictures, const std::string& sentence) {
  {
    const std::scoped_lock lock(mutex_);
    status_.num_skipped += pictures;
    drop_unfinished();
  }
  warn(sentence);
}

// The engine settles the request again before it draws.
void Job::warn(const std::string& sentence) {
  const std::scoped_lock lock(mutex_);
  if (std::ranges::count(status_.warnings, sentence) > 0) return;
  status_.warnings.push_back(sentence);
  publish("warning", {{"message", sentence}});
}

void Job::finish(const JobResult& result) {
  const std::scoped_lock lock(mutex_);
  const auto& error = result.error;
  status_.state = result.state;
  status_.finished = Clock::now();
  status_.error = error;
  status_.cause = result.cause;
  status_.param = result.param;
  status_.eta.reset();
  pictures_ = {};
  drop_unfinished();
  publish(state_name(result.state), error.empty() ? Json::object() : Json{{"message", error}});
}

void Job::mark_fetched(std::size_t picture) {
  const std::scoped_lock lock(mutex_);
  status_.pictures.at(picture).is_fetched = true;
}

// The sources are told outside the lock: callbacks of their tokens run there.
void Job::request_stop() {
  std::stop_source stop(std::nostopstate);
  {
    const std::scoped_lock lock(mutex_);
    status_.is_cancelling = true;
    stop = stop_;
  }
  stop.request_stop();
}

void Job::request_skip() {
  std::stop_source stop(std::nostopstate);
  {
    const std::scoped_lock lock(mutex_);
    const bool is_drawing = !status_.phase.empty() && status_.phase != "load";
    if (status_.state == JobState::kRunning && is_drawing) stop = stop_;
  }
  stop.request_stop();
}

std::stop_token Job::begin_drawing() {
  const std::scoped_lock lock(mutex_);
  stop_ = std::stop_source();
  if (status_.is_cancelling) stop_.request_stop();
  return stop_.get_token();
}

std::vector<Event> Job::events_after(std::uint64_t id) const {
  const std::scoped_lock lock(mutex_);
  std::vector<Event> newer;
  for (const auto& event : events_)
    if (event.id > id) newer.push_back(event);
  return newer;
}

std::shared_ptr<void> Job::subscribe(std::function<void()> wake) {
  const std::scoped_lock lock(mutex_);
  const auto number = ++last_subscriber_;
  subscribers_[number] = std::move(wake);
  return {nullptr, [this, number](void*) {
            const std::scoped_lock lock(mutex_);
            subscribers_.erase(number);
          }};
}

void Job::publish(const std::string& name, const Json& data, FileBytes file) {
  if (name == "progress")
    std::erase_if(events_, [&](const Event& event) { return event.name == name; });
  events_.push_back(
      {.id = ++last_event_, .name = name, .data = json_line(data), .file = std::move(file)});
  for (const auto& [number, wake] : subscribers_) wake();
}

}  // namespace braid::serve
