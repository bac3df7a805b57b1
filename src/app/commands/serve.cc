#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <map>

#include "app/commands/commands.h"
#include "app/commands/serve_ranks.h"
#include "app/commands/served_models.h"
#include "app/files/lora_folder.h"
#include "app/files/prompt_enhancer.h"
#include "app/machine/launched.h"
#include "app/machine/stop_signals.h"
#include "app/print/failure.h"
#include "app/words/readable.h"
#include "base/error.h"
#include "base/file.h"
#include "serve/http/descriptors.h"
#include "serve/http/http_server.h"
#include "serve/log.h"
#include "serve/log_queue.h"

namespace braid {
namespace {

constexpr std::uint64_t kMaxKeyFile = 1 << 16;          // bytes
constexpr auto kAfterDrain = std::chrono::seconds(10);  // time to end before the program is killed

// Other servers open their log again at them: scripts made for those must not end this one.
const std::vector<int> kIgnoredSignals = {SIGUSR1, SIGUSR2};

std::string read_key(const ServeFlags& flags) {
  const auto* const variable = std::getenv("BRAID_API_KEY");
  if (flags.api_key_file.empty() && !variable) return "";
  const auto& file = flags.api_key_file;
  const auto what =
      file.empty() ? "the key in the variable BRAID_API_KEY" : "the key in " + file.string();
  return serve::key_in_text(file.empty() ? variable : read_stream(file, what, kMaxKeyFile), what);
}

std::string seconds_text(serve::Clock::time_point from, serve::Clock::time_point to) {
  return decimal(std::chrono::duration<double>(to - from).count());
}

serve::Access access_of(const ServeFlags& flags) {
  return {.key = read_key(flags),
          .hosts = {flags.allow_hosts.begin(), flags.allow_hosts.end()},
          .origins = {flags.allow_origins.begin(), flags.allow_origins.end()},
          .base_path = flags.base_path};
}

std::string policy_of(const std::vector<std::string>& frame_ancestors) {
  std::string sources;
  for (const auto& source : frame_ancestors) sources += (sources.empty() ? "" : " ") + source;
  return sources.empty() ? "'none'" : sources;
}

// Each model's, by name: what they are told may be in its folder. Clients' prompts are kept in
// memory alone.
serve::Enhance enhance_of(const ServeFlags& flags, const std::vector<ServedModel>& models) {
  if (flags.enhancer.url.empty() || !is_first_rank()) return {};
  const auto enhancers = std::make_shared<std::map<std::string, net::Enhancer>>();
  const auto answers = net::answers_in_memory();
  for (const auto& model : models)
    enhancers->try_emplace(
        model.name, prompt_enhancer(flags.enhancer, model.deployment.options.model, answers));
  return [enhancers](const serve::Backend& backend, const net::PlainPrompt& prompt,
                     const std::stop_token& stop) {
    return enhancers->at(backend.model).enhance(prompt, stop);
  };
}

// Waits for as long as the reader of standard error does. False if the line cannot be written.
bool write_log_line(const std::string& line) {
  for (std::string_view rest = line; !rest.empty();) {
    const auto n = ::write(STDERR_FILENO, rest.data(), rest.size());
    if (n > 0) {
      rest.remove_prefix(std::size_t(n));
      continue;
    }
    if (n == 0 || (errno != EINTR && errno != EAGAIN)) return false;
    pollfd reader{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
    (void)::poll(&reader, 1, -1);
  }
  return true;
}

// The server from its first log line to its last.
class ServeRun {
 public:
  explicit ServeRun(const ServeFlags& flags)
      : flags_(flags),
        engines_(std::make_shared<ServedEngines>(
            served_models(flags), serve::MemoryNeed{flags.options.memory.budget.device,
                                                    flags.options.memory.budget.host})),
        signals_(std::chrono::seconds(flags.drain) + kAfterDrain, kIgnoredSignals),
        service_([this](const Hooks& hooks) { return load(hooks); }, service_options()),
        api_({.service = service_,
              .bounds = flags.bounds,
              .unknown_fields = flags.warns_of_unknown_fields ? serve::UnknownFields::kWarnedOf
                                                              : serve::UnknownFields::kRefused,
              .frame_ancestors = policy_of(flags.frame_ancestors),
              .num_connections = [this] { return server_.num_connections(); },
              .enhance = enhance_of(flags, engines_->models())},
             access_of(flags)),
        server_(api_, server_options()) {}

  int run();

 private:
  std::vector<serve::Backend> load(const Hooks& hooks);
  serve::ServiceOptions service_options();
  serve::HttpServerOptions server_options();
  void log_job(const serve::Job& job);
  void drain();

  const ServeFlags& flags_;
  const int max_connections_ = serve::room_for_connections(flags_.http.max_connections);
  std::shared_ptr<ServedEngines> engines_;
  StopSignals signals_;
  serve::LogQueue lines_{write_log_line};
  serve::Log log_{[this](const std::string& line) { lines_.add(line); }};
  serve::Service service_;
  serve::Api api_;
  serve::HttpServer server_;
  std::jthread drained_;
};

std::vector<serve::Backend> ServeRun::load(const Hooks& hooks) {
  auto backends = backends_of(engines_, flags_.lora_folder);
  (void)engines_->use(0, hooks);
  return backends;
}

serve::ServiceOptions ServeRun::service_options() {
  auto options = flags_.service;
  options.on_warning = [this](const std::string& sentence) {
    log_("warning", {{"message", sentence}});
  };
  options.on_ready = [this, began = serve::Clock::now()] {
    log_("ready", {{"model", engines_->models().front().name},
                   {"seconds", seconds_text(began, serve::Clock::now())}});
  };
  options.on_end = [this](const serve::Job& job) { log_job(job); };
  options.on_stopped = [this] { server_.stop(); };
  return options;
}

serve::HttpServerOptions ServeRun::server_options() {
  auto options = flags_.http;
  options.max_body_bytes = std::uint64_t(flags_.bounds.max_body_bytes);
  options.max_connections = max_connections_;
  options.on_warning = [this](const std::string& sentence) {
    log_("warning", {{"message", sentence}});
  };
  options.log = [this](const serve::RequestLog& r) {
    if (flags_.verbosity == Verbosity::kQuiet) return;
    log_("request", {{"id", r.id},
                     {"method", r.method},
                     {"path", r.path},
                     {"status", std::to_string(r.status)},
                     {"seconds", decimal(r.seconds)},
                     {"bytes", std::to_string(r.bytes)},
                     {"client", r.client}});
  };
  return options;
}

void ServeRun::log_job(const serve::Job& job) {
  if (flags_.verbosity == Verbosity::kQuiet) return;
  const auto status = job.status();
  const auto& request = job.order().request;
  for (const auto& sentence : status.warnings)
    log_("warning", {{"job", job.id()}, {"message", sentence}});
  const auto begun = status.started.value_or(*status.finished);
  log_("job", {{"job", job.id()},
               {"state", state_name(status.state)},
               {"pictures", std::to_string(status.pictures.size())},
               {"size", text_of(*request.width, "x", *request.height)},
               {"steps", std::to_string(*request.steps)},
               {"queued", seconds_text(job.accepted(), begun)},
               {"seconds", seconds_text(begun, *status.finished)},
               {"error", status.error},
               {"prompt", flags_.log_prompts ? request.prompts.front() : ""}});
}

// A thread of StopSignals calls this. Accepted requests are finished, within a time limit.
void ServeRun::drain() {
  const auto status = service_.status();
  log_("drain", {{"signal", signal_name(signals_.received())},
                 {"seconds", std::to_string(flags_.drain)},
                 {"running", std::to_string(status.running)},
                 {"waiting_pictures", std::to_string(status.waiting_pictures)},
                 {"unfetched_pictures", std::to_string(service_.num_unfetched())}});
  service_.drain();
  drained_ = std::jthread([this](const std::stop_token& over) {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any().wait_for(lock, over, std::chrono::seconds(flags_.drain),
                                           [] { return false; });
    if (!over.stop_requested()) service_.stop();
  });
}

int ServeRun::run() {
  const auto port = server_.port();
  log_("listening",
       {{"address", flags_.http.address}, {"port", port > 0 ? std::to_string(port) : ""}});
  for (const auto& sentence : flags_.unused) log_("warning", {{"message", sentence}});
  if (const int most = flags_.http.max_connections; max_connections_ < most)
    log_("warning", {{"message", text_of("the limit on open files (ulimit -n) leaves room for ",
                                         max_connections_, " connections instead of ", most)}});
  for (const auto& model : engines_->models()) {
    if (const auto& pages = model.deployment.pages)
      log_("files", {{"model", model.name}, {"folder", pages->folder().string()}});
    if (!model.deployment.measured_flops.empty())
      log_("shares", {{"model", model.name},
                      {"by_measured_speed", to_string(model.deployment.degrees().shares)}});
    for (const auto& sentence : model.warnings)
      log_("warning", {{"model", model.name}, {"message", sentence}});
  }
  const auto on_ignored = signals_.on_ignored([this](int signal) {
    log_("warning", {{"message", text_of(signal_name(signal), " is ignored")}});
  });
  const std::stop_callback on_signal(signals_.token(), [this] { drain(); });
  service_.start();
  server_.run();
  service_.wait();
  if (const auto failure = service_.failure()) std::rethrow_exception(failure);
  log_("stopped", {});
  return kSuccess;
}

}  // namespace

int serve_pictures(const ServeFlags& flags) {
  require(flags.lora_folder.empty() || is_folder(flags.lora_folder),
          "--lora-dir should be a folder, ", flags.lora_folder.string(), " is not one");
  if (!flags.lora_folder.empty()) (void)loras_in(flags.lora_folder);  // throws if it is unreadable
  if (is_first_rank()) return ServeRun(flags).run();
  // Only the first rank receives stop signals, and tells the others when to stop.
  const StopSignals held(std::chrono::seconds(flags.drain) + kAfterDrain, kIgnoredSignals);
  follow_first_rank(Engine(served_models(flags).front().deployment, {}));
  return kSuccess;
}

}  // namespace braid
