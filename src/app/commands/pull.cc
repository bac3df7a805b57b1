#include "net/hub/pull.h"
#include "app/commands/commands.h"
#include "app/machine/stop_signals.h"
#include "app/print/failure.h"
#include "app/print/readable_json.h"
#include "app/print/standard_output.h"
#include "app/print/transfer.h"
#include "app/words/readable.h"
#include "base/error.h"
#include "pipeline/files/needed_files.h"

namespace braid {
namespace {

HubName name_to_pull(const PullFlags& flags) {
  auto name = hub_name(flags.name);
  require(name.has_value(), in_quotes(flags.name),
          " is no name of a repository: it should be org/name, org/name@revision or org/name/file");
  return *std::move(name);
}

// One run of the command.
class PullRun {
 public:
  explicit PullRun(const PullFlags& flags)
      : flags_(flags),
        name_(name_to_pull(flags)),
        display_(display_on_standard_error(flags.quiet)) {}

  int run() {
    try {
      return load();
    } catch (const Cancelled&) {
      display_.clear();
      display_.say("stopped; the same command goes on from here");
      return kSignalled + signals_.received();
    }
  }

 private:
  int load() {
    pull_.emplace(net::PullOptions{.access = net::hub_access(),
                                   .name = name_,
                                   .workers = flags_.workers,
                                   .checks_all = flags_.verify},
                  hooks());
    const auto paths =
        needed_files({.name = name_.repository,
                      .paths = pull_->listing().paths,
                      .text = [&](const std::string& path) { return pull_->text_of_file(path); }},
                     name_.inside.string());
    const auto files = pull_->describe(paths);
    const auto missing = pull_->bytes_missing(files);
    if (flags_.dry_run) return list(files, missing + (flags_.verify ? bytes_damaged(files) : 0));
    pull_->check_space(files);
    pull_->fetch(files);
    pull_->publish(files);
    display_.finish();
    if (flags_.json) {
      print(indented_json(json_of(files, missing + pull_->bytes_loaded_again())));
    } else {
      print((pull_->snapshot() / name_.inside).string() + "\n");
    }
    return kSuccess;
  }

  // They would be loaded again.
  std::uint64_t bytes_damaged(const std::vector<net::HubFile>& files) {
    std::uint64_t bytes = 0;
    for (const auto& file : pull_->damaged(files)) {
      display_.say(one_line(file.path) + " is damaged");
      bytes += file.size;
    }
    return bytes;
  }

  net::PullHooks hooks() {
    return {.progress = [this](const net::PullProgress& progress) { display_.show(progress); },
            .say = [this](const std::string& sentence) { display_.say(sentence); },
            .stop = signals_.token()};
  }

  OrderedJson json_of(const std::vector<net::HubFile>& files, std::uint64_t missing) const {
    OrderedJson list = OrderedJson::array();
    std::uint64_t bytes = 0;
    for (const auto& file : files) {
      list.push_back({{"path", file.path}, {"bytes", file.size}, {"hash", file.etag}});
      bytes += file.size;
    }
    return {{"repository", name_.repository},
            {"revision", name_.revision.empty() ? "main" : name_.revision},
            {"commit", pull_->listing().commit},
            {"path", (pull_->snapshot() / name_.inside).string()},
            {"bytes", bytes},
            {"missing_bytes", missing},
            {"files", list}};
  }

  int list(const std::vector<net::HubFile>& files, std::uint64_t missing) const {
    if (flags_.json) {
      print(indented_json(json_of(files, missing)));
      return kSuccess;
    }
    std::string text;
    std::uint64_t bytes = 0;
    for (const auto& file : files) {
      text +=
          right_aligned(readable_bytes(double(file.size)), 11) + "  " + one_line(file.path) + "\n";
      bytes += file.size;
    }
    print(text + right_aligned(readable_bytes(double(bytes)), 11) + "  together, " +
          readable_bytes(double(missing)) + " of it missing here\n");
    return kSuccess;
  }

  const PullFlags& flags_;
  HubName name_;
  StopSignals signals_;
  TransferDisplay display_;
  std::optional<net::Pull> pull_;
};

}  // namespace

int pull_model(const PullFlags& flags) {
  require(net::has_web_client(),
          "this build downloads nothing: libcurl (libcurl4-openssl-dev) was missing when it was "
          "made; 'hf download' of Hugging Face's library fills the same cache");
  return PullRun(flags).run();
}

}  // namespace braid
