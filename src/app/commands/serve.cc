#include <atomic>
#include <condition_variable>
#include <iostream>

#include "app/commands/commands.h"
#include "app/commands/serve_ranks.h"
#include "app/files/bundled_model.h"
#include "app/files/picture_text.h"
#include "app/flags/preset_flags.h"
#include "app/machine/launched.h"
#include "app/machine/stop_signals.h"
#include "app/print/failure.h"
#include "base/error.h"
#include "base/file.h"
#include "comm/fate.h"
#include "pipeline/engine.h"
#include "pipeline/planner/fit.h"
#include "serve/http/http_server.h"
#include "serve/log.h"

namespace braid {
namespace {

using serve::Backend;

constexpr int kShortestKey = 16;
constexpr auto kAfterDrain = std::chrono::seconds(10);  // to end, before the program is cut short

// What the command line leaves to this machine, for requests of the model's default size.
struct Chosen {
  PipelineOptions options;
  VaeTiling tiling;
};
Chosen settled(const ServeFlags& flags) {
  auto options = flags.options;
  settle_model(options);
  const auto launch = read_launch();
  const int num_ranks = launch ? launch->size : int(device_names(options).size());
  options.layout = choose_layout(options.layout, num_ranks, 1);
  options.layout.ranks = Ranks::kProcesses;  // where a launcher started this program
  (void)world_of(options.layout);
  auto here = options;
  here.device = device_of_rank(options.device);
  (void)devices_of(here, degrees_of(options.layout));
  options.memory = choose_memory(flags.preset, options).memory;
  auto tiling = flags.vae_tiling;
  if (options.memory.budget.is_set()) {
    auto fit = fitted(options, {.vae_tiling = tiling});
    options = std::move(fit.options);
    tiling = fit.tiling;
  }
  options.device = here.device;
  return {options, tiling};
}

// Engines throw what LibTorch throws, too; clients get one sentence.
void draw(const Engine& engine, const Request& request, const Hooks& hooks) {
  try {
    if (is_launched()) announce_request(engine, request);
    engine.generate(request, hooks);
  } catch (const Cancelled&) {
    throw;
  } catch (const WorldLost& loss) {
    throw serve::BackendLost(loss.what());
  } catch (...) {
    throw Error(current_failure().sentence);
  }
}

void announce(const Engine& engine, void (*what)(const Engine&)) {
  if (!is_launched()) return;
  try {
    what(engine);
  } catch (const std::exception& loss) {
    throw serve::BackendLost(loss.what());
  }
}

Backend backend_of(const std::shared_ptr<const Engine>& engine, const PipelineOptions& options,
                   VaeTiling tiling) {
  return {
      .model = model_name(options.model),
      .info = engine->info(),
      .complete =
          [=](const Request& request, const Hooks& hooks) {
            auto tiled = request;
            if (tiled.vae_tiling == VaeTiling::kAuto) tiled.vae_tiling = tiling;
            return engine->complete(tiled, hooks);
          },
      .generate = [=](const Request& request,
                      const Hooks& hooks) { draw(*engine, request, hooks); },
      .png =
          [=](const Picture& picture, const Request& request, const std::vector<InputFile>& files) {
            const auto settings = engine->settle(request, {});
            return encode_png(
                picture.width, picture.height, picture.rgb,
                text_of_picture(picture, settings.prompt_of(0), settings, options, files));
          },
      .keep_alive = [=] { announce(*engine, announce_nothing); },
      .leave = [=] { announce(*engine, announce_end); }};
}

std::string read_key(const ServeFlags& flags) {
  const auto* const variable = std::getenv("BRAID_API_KEY");
  if (flags.api_key_file.empty() && !variable) return "";
  const auto text = flags.api_key_file.empty() ? variable : read_file(flags.api_key_file, 1 << 16);
  const auto key = text.substr(0, text.find_first_of("\r\n"));
  require(int(key.size()) >= kShortestKey, "an API key should have at least ", kShortestKey,
          " characters, this has ", key.size());
  return key;
}

std::string seconds_text(serve::Clock::time_point from, serve::Clock::time_point to) {
  return decimal(std::chrono::duration<double>(to - from).count());
}

serve::Access access_of(const ServeFlags& flags) {
  return {.key = read_key(flags),
          .hosts = {flags.allow_hosts.begin(), flags.allow_hosts.end()},
          .origins = {flags.allow_origins.begin(), flags.allow_origins.end()}};
}

// The server from its first log line to its last.
class ServeRun {
 public:
  explicit ServeRun(const ServeFlags& flags)
      : flags_(flags),
        chosen_(settled(flags)),
        signals_(std::chrono::seconds(flags.drain) + kAfterDrain),
        service_([this](const Hooks& hooks) { return load(hooks); }, service_options()),
        api_({.service = service_,
              .bounds = {.max_pixels = flags.max_pixels, .max_steps = flags.max_steps},
              .num_connections = [this] { return server_.num_connections(); }},
             access_of(flags)),
        server_(api_, server_options()) {}

  int run();

 private:
  Backend load(const Hooks& hooks);
  serve::ServiceOptions service_options();
  serve::HttpServerOptions server_options();
  void log_job(const serve::Job& job);
  void drain();

  const ServeFlags& flags_;
  Chosen chosen_;
  StopSignals signals_;
  serve::Log log_{[](const std::string& line) { std::cerr << line; }};
  serve::Service service_;
  serve::Api api_;
  serve::HttpServer server_;
  std::jthread drained_;
};

Backend ServeRun::load(const Hooks& hooks) {
  const auto engine = std::make_shared<const Engine>(chosen_.options, hooks);
  return backend_of(engine, chosen_.options, chosen_.tiling);
}

serve::ServiceOptions ServeRun::service_options() {
  return {.max_waiting_pictures = flags_.queue,
          .on_ready =
              [this, began = serve::Clock::now()] {
                log_("ready", {{"model", model_name(chosen_.options.model)},
                               {"seconds", seconds_text(began, serve::Clock::now())}});
              },
          .on_end = [this](const serve::Job& job) { log_job(job); },
          .on_stopped = [this] { server_.stop(); }};
}

serve::HttpServerOptions ServeRun::server_options() {
  return {.address = flags_.host, .port = flags_.port, .log = [this](const serve::RequestLog& r) {
            if (flags_.verbosity == Verbosity::kQuiet) return;
            log_("request", {{"id", r.id},
                             {"method", r.method},
                             {"path", r.path},
                             {"status", std::to_string(r.status)},
                             {"seconds", decimal(r.seconds)},
                             {"bytes", std::to_string(r.bytes)},
                             {"client", r.client}});
          }};
}

void ServeRun::log_job(const serve::Job& job) {
  if (flags_.verbosity == Verbosity::kQuiet) return;
  const auto status = job.status();
  const auto& request = job.order().request;
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

// On the thread that heard the signal. What is accepted is finished, but not for ever.
void ServeRun::drain() {
  log_("drain", {{"seconds", std::to_string(flags_.drain)}});
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
  log_("listening", {{"address", flags_.host}, {"port", std::to_string(server_.port())}});
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
  if (is_first_rank()) return ServeRun(flags).run();
  // The first rank hears of signals to stop, and says when the others may.
  const StopSignals held(std::chrono::seconds(flags.drain) + kAfterDrain);
  follow_first_rank(Engine(settled(flags).options, {}));
  return kSuccess;
}

}  // namespace braid
