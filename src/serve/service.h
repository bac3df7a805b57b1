// The server behind its sockets: loads the model, keeps jobs and makes their pictures on one
// thread, job by job. Any thread may call any function.
#pragma once

#include <condition_variable>
#include <thread>

#include "serve/api_error.h"
#include "serve/backend.h"
#include "serve/jobs/kept_jobs.h"
#include "serve/jobs/pace.h"
#include "serve/jobs/queue.h"
#include "serve/metrics.h"
#include "serve/readiness.h"
#include "serve/reservation.h"

namespace braid::serve {

struct ServiceOptions {
  int max_waiting_pictures = 64;
  std::size_t max_waiting_input_bytes = std::size_t(512) << 20;  // of pictures that jobs bring
  KeepLimits keep = {};
  // How often an idle server tells other ranks that it lives, and forgets old jobs.
  std::chrono::milliseconds heartbeat{1000};
  // Called for what loading warns of, once jobs are accepted, for each job that ends, and after the
  // last one has ended.
  std::function<void(const std::string& sentence)> on_warning = {};
  std::function<void()> on_ready = {};
  std::function<void(const Job&)> on_end = {};
  std::function<void()> on_stopped = {};
};

class Service {
 public:
  Service(Load load, ServiceOptions options);
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;
  ~Service();  // stops at once

  // Loads, then works.
  void start() {
    thread_ = std::thread([this] { work(); });
  }

  struct Status {
    Readiness readiness = Readiness::kLoading;
    double loaded = 0;  // 0 to 1
    int running = 0, waiting = 0, waiting_pictures = 0;
    std::optional<double> seconds_until_idle = {};
  };
  Status status() const;
  // All models. Throws ApiError 503 until the first one is loaded.
  const std::vector<Backend>& backends() const;
  const Backend& backend() const { return backends().front(); }

  // Throws ApiError 503 if what has room is not finished either: the server has stopped, or was cut
  // short.
  void require_not_stopped() const;
  // All throw ApiError: 503 unless the server is ready, or drains and the job has its room; all but
  // the first 429 if the queue is full, and reserve() also if the client has its share of it; 400
  // or 413 for what an empty queue would not take.
  void require_ready() const;
  void require_room() const;  // before a body is read
  // Keeps room for a job of this client (as of Order), before its pictures are decoded, while the
  // result lives or until submit(). A server that drains waits for it.
  [[nodiscard]] Reservation reserve(std::string client, const Room& room);
  std::shared_ptr<Job> submit(Order order, Reservation reserved = {});
  std::shared_ptr<Job> find(const std::string& id) const;                      // null if unknown
  std::vector<std::shared_ptr<Job>> jobs_of(const std::string& client) const;  // those still kept
  // The running job; null if there is none.
  std::shared_ptr<Job> running() const;
  int jobs_before(const Job& job) const;                            // started before a queued one
  std::optional<double> seconds_until_start(const Job& job) const;  // of a queued one
  // A waiting job ends at once, a running one within a step. A finished job stays as it is, but a
  // server that stops does not wait for its reader.
  void cancel(const std::shared_ptr<Job>& job);
  // Frees the models' memory as soon as nothing runs or waits; the next job loads its model again.
  // False if the models stay.
  bool release_models();

  void drain();               // takes no more jobs, and stops when the last one is fetched
  int num_unfetched() const;  // pictures that their clients may still come for
  void stop();                // also cancels all jobs
  // Until the thread has ended.
  void wait() {
    if (thread_.joinable()) thread_.join();
  }
  std::exception_ptr failure() const;  // why the engine cannot go on; null: it can

  void warn(const std::string& sentence) const {
    if (options_.on_warning) options_.on_warning(sentence);
  }
  // Writes to the log why a model cannot be loaded, and returns what clients are told: no paths.
  std::string told_of(const LoadFailed& failure, const Backend& backend) const;

  int max_waiting_pictures() const { return options_.max_waiting_pictures; }
  Metrics& metrics() { return metrics_; }

 private:
  friend class Reservation;
  void work();
  bool load();
  void tell_ranks(const std::function<void()>& tell);
  void wait_for_readers();
  std::shared_ptr<Job> next();
  void look_after_models(std::unique_lock<std::mutex>& lock);
  void run(const std::shared_ptr<Job>& job);
  JobResult result_of_pictures(Job& job, std::exception_ptr& lost);
  void make_pictures(Job& job);
  JobResult cancelled() const;
  void end(const std::shared_ptr<Job>& job, const JobResult& result);
  std::optional<double> seconds_of(const Job& job) const;
  std::optional<double> seconds_until_next() const;
  std::optional<double> seconds_of_queue(const Job* until) const;
  ApiError no_room(const std::string& client, const Room& wanted) const;
  bool is_over() const;
  bool is_drained() const;
  const Backend* backend_of(const Job& job) const;
  void stop_working(std::exception_ptr failure);
  void change(Readiness readiness);

  const Load load_;
  const ServiceOptions options_;
  mutable Metrics metrics_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Readiness readiness_ = Readiness::kLoading;
  double loaded_ = 0;
  std::vector<Backend> backends_;  // written once, before readiness_ changes
  std::exception_ptr failure_;
  std::map<const Backend*, Pace> paces_;
  Queue queue_;
  std::shared_ptr<Job> running_;
  KeptJobs kept_;
  bool is_cut_short_ = false, wants_release_ = false;
  std::stop_source stop_loading_;
  std::thread thread_;
};

}  // namespace braid::serve
