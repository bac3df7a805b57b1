// One request for pictures from acceptance to end, with its events. Any thread may call any
// function.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "base/json.h"
#include "serve/jobs/order.h"

namespace braid::serve {

using Clock = std::chrono::steady_clock;

enum class JobState { kQueued, kRunning, kDone, kFailed, kCancelled };
const char* state_name(JobState state);
inline bool is_final(JobState state) { return state > JobState::kRunning; }

// Why a job did not end well.
enum class Cause {
  kWork,     // its own work failed, or its client cancelled it
  kRequest,  // the engine refused the request
  kStop,     // the server stops: another one may do it
  kLoad,     // its model could not be loaded
};

struct JobResult {
  JobState state = JobState::kDone;
  std::string error = {};  // if it failed
  Cause cause = Cause::kWork;
  std::string param = {};  // the field of the request that was at fault, if that is known
};

using FileBytes = std::shared_ptr<const std::string>;

struct MadePicture {
  std::uint64_t seed = 0;
  int width = 0, height = 0;
  int frame = 0, num_frames = 1;  // of a clip, whose frames follow each other; or of layers
  double frames_per_second = 0;   // of a clip; 0: a picture, or a layer of one
  FileBytes file;
  bool is_fetched = false;  // by its URL
};

// What clients learn of it beside the file: seed and size; of a clip's frame, or a layer, its
// place, too.
Json made_json(const MadePicture& picture);

// `id` counts from 1 within a job. Only the newest "progress" is kept, and the newest "preview" of
// each picture that is being drawn: a late reader sees where the job is, not how it got there.
struct Event {
  std::uint64_t id = 0;
  // queued, started, warning, progress, preview, picture, done, failed, cancelled
  std::string name;
  std::string data;           // one line of JSON
  FileBytes file = {};        // for previews and pictures
  int picture = 0, step = 0;  // of a preview
};

class Job {
 public:
  Job(std::string id, Order order);

  const std::string& id() const { return id_; }
  // Its request has no pictures, but their strength and resolution.
  const Order& order() const { return order_; }
  // Files that it makes: each frame of a clip is one, and each layer.
  int num_pictures() const {
    const auto& r = order_.request;
    return r.num_images * r.frames.value_or(1) * r.layers.value_or(1);
  }
  std::size_t num_input_bytes() const { return num_input_bytes_; }
  // Gives away the request with its pictures: a job outlives its work by far.
  Request take_request();
  Clock::time_point accepted() const { return accepted_; }

  // A copy of the changing state.
  struct Status {
    JobState state = JobState::kQueued;
    bool is_cancelling = false;
    std::optional<Clock::time_point> started = {}, finished = {};
    std::string phase = {};          // "text", "denoise", "decode" while running
    int step = 0, steps = 0;         // of the pictures being made: done, and all that are taken
    std::optional<double> eta = {};  // seconds, for the whole job
    std::vector<MadePicture> pictures = {};
    int num_unfinished = 0;  // files of a picture of which others are still to come
    int num_skipped = 0;     // files that it did not make
    std::string error = {};  // if it failed
    Cause cause = Cause::kWork;
    std::string param = {};  // as of JobResult
    // What the client should know: of its request, then of the work on it.
    std::vector<std::string> warnings = {};
  };
  Status status() const;
  std::size_t num_bytes() const;  // of its pictures

  // State changes, each publishing its event.
  void start();
  void advance(const std::string& phase, int step, int steps, std::optional<double> eta);
  void preview(int picture, int step, FileBytes file);
  // The layers of a picture, and the frames of a clip, are handed over with the last of them. A
  // skip and the job's end drop those of which some are missing.
  void add(MadePicture picture);
  void skip(int pictures, const std::string& sentence);  // files; the sentence is a warning
  void warn(const std::string& sentence);                // once for each
  void finish(const JobResult& result);

  void mark_fetched(std::size_t picture);
  void request_stop();
  // Leaves out the picture that is being drawn, or those that are drawn together, and goes on with
  // the next; nothing before the first is begun.
  void request_skip();
  // Call before each call of the engine: the token ends that one.
  [[nodiscard]] std::stop_token begin_drawing();

  // Events with larger ids, in order.
  std::vector<Event> events_after(std::uint64_t id) const;

  // While the result lives, `wake` is called after each change, on any thread and under a lock: it
  // must not call into the job.
  [[nodiscard]] std::shared_ptr<void> subscribe(std::function<void()> wake);

 private:
  void drop_unfinished();
  void drop_previews(int picture, int step);
  void publish(const std::string& name, const Json& data, FileBytes file = {});

  const std::string id_;
  PicturesIn pictures_;  // until taken, or the job has ended
  const std::size_t num_input_bytes_;
  const Order order_;
  const Clock::time_point accepted_ = Clock::now();
  std::stop_source stop_;  // of the call of the engine
  mutable std::mutex mutex_;
  Status status_;
  std::vector<MadePicture> unfinished_;
  std::uint64_t last_event_ = 0;
  std::deque<Event> events_;
  std::uint64_t last_subscriber_ = 0;
  std::map<std::uint64_t, std::function<void()>> subscribers_;
};

// 128 random bits in hexadecimal digits.
std::string random_id();

}  // namespace braid::serve
