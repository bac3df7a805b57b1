#include "serve/service.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "serve/body/loras.h"
#include "serve/jobs/picture_run.h"

namespace braid::serve {
namespace {

constexpr int kLongestRetry = 120;  // seconds: OpenAI's clients give up on more
constexpr int kRetryUnknown = 10;   // seconds, where nothing says when there will be room
constexpr auto kLookForReaders = std::chrono::milliseconds(50);

double seconds_since(Clock::time_point then) {
  return std::chrono::duration<double>(Clock::now() - then).count();
}

}  // namespace

Service::Service(Load load, ServiceOptions options)
    : load_(std::move(load)),
      options_(std::move(options)),
      queue_(options_.max_waiting_pictures, options_.max_waiting_input_bytes),
      kept_(options_.keep) {}

Service::~Service() {
  stop();
  wait();
}

Service::Status Service::status() const {
  const std::scoped_lock lock(mutex_);
  return {.readiness = readiness_,
          .loaded = loaded_,
          .running = running_ ? 1 : 0,
          .waiting = queue_.num_jobs(),
          .waiting_pictures = queue_.used().pictures,
          .seconds_until_idle = seconds_of_queue(nullptr)};
}

const Backend* Service::backend_of(const Job& job) const {
  return job.order().backend ? job.order().backend : backends_.data();
}

std::optional<double> Service::seconds_of(const Job& job) const {
  const auto pace = paces_.find(backend_of(job));
  return pace == paces_.end() ? std::nullopt : pace->second.seconds_of(job.order().request);
}

// A job that has just begun says nothing yet.
std::optional<double> Service::seconds_until_next() const {
  if (!running_) return 0;
  const auto status = running_->status();
  return status.phase.empty() ? seconds_of(*running_) : status.eta;
}

// Counts until a waiting job starts, or until all have ended if it is null.
std::optional<double> Service::seconds_of_queue(const Job* until) const {
  auto sum = seconds_until_next();
  for (const auto& job : queue_.in_order()) {
    if (job.get() == until || !sum) return sum;
    const auto seconds = seconds_of(*job);
    sum = seconds ? std::optional(*sum + *seconds) : std::nullopt;
  }
  return sum;
}

const std::vector<Backend>& Service::backends() const {
  const std::scoped_lock lock(mutex_);
  if (backends_.empty()) throw unavailable(readiness_);
  return backends_;
}

ApiError Service::no_room(const std::string& client, const Room& wanted) const {
  if (!queue_.could_have(wanted)) return too_large_for(queue_, wanted);
  ApiError error(429, fullness_text(queue_, client, wanted), "queue_full");
  // The next one to start leaves room. Where none waits, requests keep it whose pictures are being
  // decoded, or whose prompts are with the enhancer.
  const auto wait = queue_.num_jobs() == 0 ? std::nullopt : seconds_until_next();
  error.retry_after =
      wait ? int(std::clamp(std::ceil(*wait), 1.0, double(kLongestRetry))) : kRetryUnknown;
  return error;
}

void Service::require_ready() const {
  const std::scoped_lock lock(mutex_);
  if (readiness_ != Readiness::kReady) throw unavailable(readiness_);
}

bool Service::is_over() const { return is_cut_short_ || readiness_ == Readiness::kStopped; }

void Service::require_not_stopped() const {
  const std::scoped_lock lock(mutex_);
  if (is_over()) throw unavailable(readiness_);
}

void Service::require_room() const {
  const std::scoped_lock lock(mutex_);
  if (readiness_ != Readiness::kReady) throw unavailable(readiness_);
  if (const Room one{.pictures = 1}; !queue_.has_room(one)) throw no_room("", one);
}

Reservation Service::reserve(std::string client, const Room& room) {
  const std::scoped_lock lock(mutex_);
  if (readiness_ != Readiness::kReady) throw unavailable(readiness_);
  if (!queue_.reserve(client, room)) throw no_room(client, room);
  return {*this, std::move(client), room};
}

std::shared_ptr<Job> Service::submit(Order order, Reservation reserved) {
  const std::scoped_lock lock(mutex_);
  const bool may_come = reserved.has_room() ? !is_over() : readiness_ == Readiness::kReady;
  if (!may_come) throw unavailable(readiness_);
  reserved.give_to(queue_);
  auto job = std::make_shared<Job>(random_id(), std::move(order));
  if (!queue_.push(job))
    throw no_room(job->order().client, {.pictures = job->order().request.num_images,
                                        .input_bytes = job->num_input_bytes()});
  kept_.forget_old();
  if (job->order().is_kept) kept_.add(job);
  changed_.notify_all();
  return job;
}

std::shared_ptr<Job> Service::find(const std::string& id) const {
  const std::scoped_lock lock(mutex_);
  return kept_.find(id);
}

std::vector<std::shared_ptr<Job>> Service::jobs_of(const std::string& client) const {
  const std::scoped_lock lock(mutex_);
  return kept_.of_client(client);
}

std::shared_ptr<Job> Service::running() const {
  const std::scoped_lock lock(mutex_);
  return running_;
}

int Service::jobs_before(const Job& job) const {
  const std::scoped_lock lock(mutex_);
  const auto order = queue_.in_order();
  const auto it =
      std::find_if(order.begin(), order.end(), [&](const auto& one) { return one.get() == &job; });
  return it == order.end() ? 0 : int(it - order.begin()) + (running_ ? 1 : 0);
}

std::optional<double> Service::seconds_until_start(const Job& job) const {
  const std::scoped_lock lock(mutex_);
  return seconds_of_queue(&job);
}

void Service::cancel(const std::shared_ptr<Job>& job) {
  bool waited = false;
  {
    const std::scoped_lock lock(mutex_);
    waited = queue_.remove(*job);
  }
  if (waited)
    end(job, cancelled());
  else
    job->request_stop();  // of a finished one: nobody comes for its pictures
}

JobResult Service::cancelled() const {
  const std::scoped_lock lock(mutex_);
  return {.state = JobState::kCancelled, .cause = is_cut_short_ ? Cause::kStop : Cause::kWork};
}

void Service::drain() {
  const std::scoped_lock lock(mutex_);
  if (readiness_ == Readiness::kLoading) stop_loading_.request_stop();
  if (readiness_ != Readiness::kStopped) change(Readiness::kDraining);
}

void Service::stop() {
  drain();
  std::vector<std::shared_ptr<Job>> jobs;
  {
    const std::scoped_lock lock(mutex_);
    is_cut_short_ = true;
    changed_.notify_all();
    jobs = queue_.in_order();
    if (running_) jobs.push_back(running_);
  }
  for (const auto& job : jobs) cancel(job);
}

std::exception_ptr Service::failure() const {
  const std::scoped_lock lock(mutex_);
  return failure_;
}

void Service::change(Readiness readiness) {
  readiness_ = readiness;
  changed_.notify_all();
}

// An engine that nobody drives any more must not seem ready.
void Service::work() {
  try {
    if (load()) {
      while (const auto job = next()) run(job);
      if (!failure()) tell_ranks(backend().leave);
      wait_for_readers();
    }
  } catch (...) {
    stop_working(std::current_exception());
  }
  if (options_.on_stopped) options_.on_stopped();
}

// Gives clients that were just told of their pictures time to fetch them.
void Service::wait_for_readers() {
  std::unique_lock lock(mutex_);
  while (!is_cut_short_ && !failure_ && kept_.num_unfetched(Clock::now()) > 0)
    changed_.wait_for(lock, kLookForReaders);
}

int Service::num_unfetched() const {
  const std::scoped_lock lock(mutex_);
  return kept_.num_unfetched(Clock::now());
}

bool Service::load() {
  const Hooks hooks{.progress =
                        [this](const Progress& at) {
                          const std::scoped_lock lock(mutex_);
                          if (at.total > 0) loaded_ = double(at.done) / double(at.total);
                        },
                    .warning = options_.on_warning,
                    .stop = stop_loading_.get_token()};
  try {
    auto backends = load_(hooks);
    {
      const std::scoped_lock lock(mutex_);
      backends_ = std::move(backends);
      loaded_ = 1;
      if (readiness_ == Readiness::kLoading) change(Readiness::kReady);
    }
    if (options_.on_ready) options_.on_ready();
    return true;
  } catch (const Cancelled&) {
    stop_working(nullptr);
  } catch (...) {
    stop_working(std::current_exception());
  }
  return false;
}

void Service::tell_ranks(const std::function<void()>& tell) {
  if (!tell) return;
  try {
    tell();
  } catch (...) {  // some ranks may not have heard it
    stop_working(std::current_exception());
  }
}

// While nothing runs or waits.
void Service::look_after_models(std::unique_lock<std::mutex>& lock) {
  const bool is_released = std::exchange(wants_release_, false);
  lock.unlock();
  if (is_released)
    backend().release();
  else
    tell_ranks(backend().keep_alive);
  lock.lock();
}

bool Service::release_models() {
  const std::scoped_lock lock(mutex_);
  if (backends_.empty() || !backends_.front().release) return false;
  wants_release_ = true;
  changed_.notify_all();
  return true;
}

bool Service::is_drained() const {
  return is_over() || (readiness_ == Readiness::kDraining && !queue_.has_reservations());
}

// Waits for a job; null if there will be no more.
std::shared_ptr<Job> Service::next() {
  std::unique_lock lock(mutex_);
  const auto has_work = [&] { return queue_.num_jobs() > 0 || is_drained(); };
  while (!has_work()) {
    const bool has_news =
        changed_.wait_for(lock, options_.heartbeat, [&] { return has_work() || wants_release_; });
    if (!has_work()) look_after_models(lock);
    if (!has_news) kept_.forget_old();
  }
  running_ = readiness_ == Readiness::kStopped ? nullptr : queue_.pop();
  if (!running_) change(Readiness::kStopped);
  return running_;
}

void Service::run(const std::shared_ptr<Job>& job) {
  job->start();
  metrics_.waited(seconds_since(job->accepted()));
  std::exception_ptr lost;
  auto result = result_of_pictures(*job, lost);
  auto told = with_lora_names(result.error, job->order().request, *backend_of(*job));
  result.error = std::move(told.text);
  if (told.names_one) result.param = "lora";
  {
    const std::scoped_lock lock(mutex_);
    running_.reset();
  }
  if (lost) stop_working(lost);  // before a client knows, who may ask for another picture at once
  end(job, result);
}

// `lost`: why the engine cannot go on.
JobResult Service::result_of_pictures(Job& job, std::exception_ptr& lost) {
  const auto failed = [](const std::string& error, Cause cause) {
    return JobResult{.state = JobState::kFailed, .error = error, .cause = cause};
  };
  try {
    make_pictures(job);
    return {};
  } catch (const Cancelled&) {
    return cancelled();
  } catch (const BackendLost& failure) {
    lost = std::current_exception();
    return failed(failure.what(), Cause::kStop);
  } catch (const LoadFailed& failure) {
    return failed(told_of(failure, *backend_of(job)), Cause::kLoad);
  } catch (const InputError& failure) {
    return failed(failure.what(), Cause::kRequest);
  } catch (const std::exception& failure) {
    return failed(failure.what(), Cause::kWork);
  }
}

std::string Service::told_of(const LoadFailed& failure, const Backend& backend) const {
  const auto what = text_of("the model '", backend.model, "' cannot be loaded: ");
  warn(what + failure.what());
  return what + "the server's log says why";
}

void Service::make_pictures(Job& job) {
  const auto& backend = *backend_of(job);
  const auto request = job.take_request();
  PictureRun run(
      job, request, metrics_,
      [&](int pictures, double seconds) {
        const std::scoped_lock lock(mutex_);
        paces_[&backend].step_took(request, pictures, seconds);
        kept_.forget_old();  // also while a long one runs
      },
      [&](int first, int step) {
        const std::scoped_lock lock(mutex_);
        return paces_[&backend].seconds_left(request, first, step);
      });
  run.draw(backend);
  const auto rest = run.finish();
  const std::scoped_lock lock(mutex_);
  paces_[&backend].rest_took(request, rest);
}

void Service::end(const std::shared_ptr<Job>& job, const JobResult& result) {
  const auto outcome = outcome_of(result);
  metrics_.request_ended(outcome);
  if (job->status().started && outcome != Outcome::kInvalid)
    metrics_.run_took(seconds_since(job->accepted()));
  {
    const std::scoped_lock lock(mutex_);
    kept_.forget_old();  // but not this one, before its client has come for its pictures
  }
  job->finish(result);  // this notifies the client
  try {
    if (options_.on_end) options_.on_end(*job);
  } catch (const std::exception& failure) {
    warn(text_of("the end of a job could not be told: ", failure.what()));
  }
}

void Service::stop_working(std::exception_ptr failure) {
  std::vector<std::shared_ptr<Job>> jobs;
  {
    const std::scoped_lock lock(mutex_);
    if (running_) jobs.push_back(std::exchange(running_, nullptr));
    while (auto job = queue_.pop()) jobs.push_back(std::move(job));
    failure_ = std::move(failure);
    change(Readiness::kStopped);
  }
  for (const auto& job : jobs)
    end(job,
        {.state = JobState::kFailed, .error = "the server has stopped", .cause = Cause::kStop});
}

}  // namespace braid::serve
