// What `braid pull` brings from a hub, and what it leaves alone when the hub has a fault.
#include "net/hub/pull.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>

#include <fstream>
#include <set>
#include <thread>

#include "message_of.h"
#include "net/stand_in_hub.h"

namespace braid::net::pull_test {

namespace fs = std::filesystem;
using testing::HasSubstr;

const char* const kWeights = "vae/model.safetensors";

// A hub with one repository of three files, and an empty cache.
class PullFiles : public testing::Test {
 protected:
  PullFiles() {
    for (std::size_t i = 0; i < weights_.size(); ++i) weights_[i] = char(i * i >> 3);
    hub_.put("org/name/model_index.json", "{}");
    hub_.put("org/name/vae/config.json", "{\"a\": 1}");
    hub_.put(std::string("org/name/") + kWeights, weights_);
  }

  PullOptions options(const std::string& name = "org/name") const {
    return {.access = {.endpoint = hub_.endpoint(), .cache = cache_},
            .name = *hub_name(name),
            .patience = {.attempts = 3,
                         .first_wait = std::chrono::milliseconds(1),
                         .longest_wait = std::chrono::seconds(5),
                         .silence = std::chrono::seconds(20)}};
  }
  fs::path pull(const PullOptions& options, const std::function<void()>& on_sentence = {}) {
    Pull pull(options, {.say = [&](const std::string& sentence) {
                said_ += sentence + "\n";
                if (on_sentence) on_sentence();
              }});
    const auto files = pull.describe(pull.listing().paths);
    pull.check_space(files);
    pull.fetch(files);
    pull.publish(files);
    return pull.snapshot();
  }
  std::string failure(const PullOptions& options) {
    try {
      pull(options);
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing failed";
  }
  // Names of blobs, and snapshots.
  std::set<std::string> names_in(const std::string& folder) const {
    std::set<std::string> names;
    std::error_code missing;
    for (const auto& entry : fs::directory_iterator(repository_ / folder, missing))
      names.insert(entry.path().filename().string());
    return names;
  }
  void expect_no_model() const {
    EXPECT_TRUE(names_in("snapshots").empty());
    EXPECT_TRUE(names_in("refs").empty());
  }
  void expect_whole(const fs::path& snapshot) const {
    EXPECT_EQ(read_file(snapshot / kWeights), weights_);
    EXPECT_EQ(read_file(snapshot / "vae/config.json"), "{\"a\": 1}");
    EXPECT_EQ(read_file(snapshot / "model_index.json"), "{}");
    EXPECT_EQ(names_in("blobs").size(), 3u);
  }
  std::string weights_blob() const {
    for (const auto& name : names_in("blobs"))
      if (name.size() >= 64) return name;
    return "";
  }
  std::vector<std::string> ranges() const {
    std::vector<std::string> ranges;
    for (const auto& request : hub_.requests())
      if (request["where"] == "network") ranges.push_back(request["range"]);
    return ranges;
  }

  const StandInHub hub_;
  const TemporaryFolder own_;
  const fs::path cache_ = own_.path() / "hub", repository_ = cache_ / "models--org--name";
  std::string weights_ = std::string(300'000, 'w');
  std::string said_;
};

TEST_F(PullFiles, LayOutTheCacheAsTheHubsLibrary) {
  const auto snapshot = pull(options());
  expect_whole(snapshot);
  // printf 'org/name@main' | sha1sum; printf 'blob 2\0{}' | sha1sum
  EXPECT_EQ(snapshot, repository_ / "snapshots/0c2c5a30e604c37f55702a9f9c22bb1c7a50d818");
  EXPECT_EQ(read_file(repository_ / "refs/main"), snapshot.filename().string());
  EXPECT_EQ(fs::read_symlink(snapshot / "model_index.json"),
            "../../blobs/9e26dfeeb6e641a33dae4961196235bdb965b21b");
  EXPECT_EQ(fs::read_symlink(snapshot / kWeights).parent_path(), "../../../blobs");
  EXPECT_EQ(find_in_hub(*hub_name("org/name"), cache_), snapshot);
}

TEST_F(PullFiles, AreNotLoadedTwice) {
  pull(options());
  hub_.forget_requests();
  expect_whole(pull(options()));
  for (const auto& request : hub_.requests()) EXPECT_NE(request["where"], "network");
}

// A cache may be read-only, or its locks may belong to others.
TEST_F(PullFiles, ThatAreHereAreNotWritten) {
  pull(options());
  fs::remove_all(cache_ / ".locks");
  write_file(cache_ / ".locks", "no folder: there can be no lock");
  const auto long_ago = std::chrono::floor<std::chrono::seconds>(fs::file_time_type::clock::now() -
                                                                 std::chrono::hours(24));
  std::vector<fs::path> all = {cache_, repository_};
  for (const auto& entry : fs::recursive_directory_iterator(repository_))
    if (!entry.is_symlink()) all.push_back(entry.path());
  for (const auto& path : all) fs::last_write_time(path, long_ago);
  for (const bool checks_all : {false, true}) {
    auto asked = options();
    asked.checks_all = checks_all;
    expect_whole(pull(asked));
    for (const auto& path : all) EXPECT_EQ(fs::last_write_time(path), long_ago) << path;
  }
  fs::remove(repository_ / "blobs" / weights_blob());
  EXPECT_THAT(failure(options()), HasSubstr("cannot create the folder"));
  EXPECT_THROW(pull(options()), InputError);
}

TEST_F(PullFiles, AreReadToDecideWithoutBeingWritten) {
  Pull pull(options(), {});
  for (int i = 0; i < 2; ++i) EXPECT_EQ(pull.text_of_file("vae/config.json"), "{\"a\": 1}");
  EXPECT_FALSE(fs::exists(cache_));
  const auto files = pull.describe(pull.listing().paths);
  EXPECT_EQ(pull.bytes_missing(files), 2 + 8 + weights_.size());
  pull.fetch(files);
  pull.publish(files);
  expect_whole(pull.snapshot());
  EXPECT_EQ(pull.text_of_file("vae/config.json"), "{\"a\": 1}");
  int loads = 0;
  for (const auto& request : hub_.requests())
    loads += request["method"] == "GET" &&
             request["path"].get<std::string>().ends_with("vae/config.json");
  EXPECT_EQ(loads, 1);
}

TEST_F(PullFiles, ThatAreReadToDecideAreChecked) {
  const auto refusal = [&] {
    Pull pull(options(), {});
    return message_of<Error>([&] { pull.text_of_file("vae/config.json"); });
  };
  hub_.have_faults({{"other_bytes", {"vae/config.json"}}});
  EXPECT_THAT(refusal(), HasSubstr("vae/config.json of org/name arrived with another hash"));
  hub_.have_faults({{"cut", {{"vae/config.json", {3, 2}}}}});
  EXPECT_EQ(refusal(), "");
  EXPECT_EQ(hub_.requests().back()["range"], "bytes=3-");
}

TEST_F(PullFiles, TakeBranchesAndCommits) {
  hub_.put("org/name@v1/model_index.json", "[1]");
  const auto old = pull(options("org/name@v1"));
  EXPECT_EQ(read_file(old / "model_index.json"), "[1]");
  EXPECT_EQ(names_in("refs"), std::set<std::string>{"v1"});
  pull(options());
  EXPECT_EQ(find_in_hub(*hub_name("org/name@v1"), cache_), old);
  EXPECT_EQ(pull(options("org/name@" + old.filename().string())), old);
  EXPECT_EQ(names_in("refs"), (std::set<std::string>{"main", "v1"}));
  EXPECT_THAT(failure(options("org/name@v9")), HasSubstr("org/name has no revision v9"));
}

TEST_F(PullFiles, GoOnWhereAConnectionWasCut) {
  hub_.have_faults({{"cut", {{kWeights, {100'000, 2}}}}});
  expect_whole(pull(options()));
  EXPECT_EQ(ranges(), (std::vector<std::string>{"", "bytes=100000-", "bytes=200000-"}));
}

TEST_F(PullFiles, GoOnAfterARunThatFailed) {
  hub_.have_faults({{"cut", {{kWeights, {0, 3}}}}});  // no byte comes: patience ends
  EXPECT_THAT(failure(options()), HasSubstr("the same command goes on from here"));
  expect_no_model();
  hub_.have_faults({{"cut", {{kWeights, {1000, 1000}}}}, {"stall", nlohmann::json::object()}});
  auto impatient = options();
  impatient.patience.attempts = 1;
  EXPECT_THAT(failure(impatient), HasSubstr("was cut"));
  expect_no_model();
  EXPECT_EQ(fs::file_size(repository_ / "blobs" / weights_blob()), 1000u);
  EXPECT_TRUE(weights_blob().ends_with(".incomplete"));
  hub_.have_faults(nlohmann::json::object());
  hub_.forget_requests();
  expect_whole(pull(options()));
  EXPECT_EQ(ranges(), std::vector<std::string>{"bytes=1000-"});
}

TEST_F(PullFiles, StartAnewWhereTheRestCannotBeHad) {
  hub_.have_faults({{"cut", {{kWeights, {100'000, 1}}}}, {"no_ranges", true}});
  expect_whole(pull(options()));
}

TEST_F(PullFiles, DropWhatIsNotTheBeginningOfTheFile) {
  hub_.have_faults({{"cut", {{kWeights, {1000, 1000}}}}});
  auto impatient = options();
  impatient.patience.attempts = 1;
  failure(impatient);
  std::ofstream(repository_ / "blobs" / weights_blob(), std::ios::app) << "other bytes";
  hub_.have_faults(nlohmann::json::object());
  expect_whole(pull(options()));
}

TEST_F(PullFiles, WithAnotherHashAreRefused) {
  auto asked = options();
  asked.workers = 1;  // others would leave what they had begun
  for (const char* const path : {kWeights, "vae/config.json"}) {
    fs::remove_all(cache_);
    hub_.have_faults({{"other_bytes", {path}}});
    EXPECT_THAT(failure(asked), testing::AllOf(HasSubstr(std::string(path) + " of org/name"),
                                               HasSubstr("another hash")));
    expect_no_model();
    for (const auto& blob : names_in("blobs"))
      EXPECT_THAT(blob, testing::Not(testing::EndsWith(".incomplete")));
  }
}

TEST_F(PullFiles, WithAnotherSizeAreRefused) {
  hub_.have_faults({{"size", {{kWeights, 299'999}}}});
  EXPECT_THAT(failure(options()), HasSubstr("more bytes of vae/model.safetensors"));
  hub_.have_faults({{"size", {{kWeights, 300'001}}}});
  EXPECT_THAT(failure(options()), HasSubstr("another size"));
  expect_no_model();
}

TEST_F(PullFiles, ThatChangeMeanwhileAreRefused) {
  hub_.have_faults({{"commit", std::string(40, 'a')}});
  EXPECT_THAT(failure(options()), HasSubstr("it changed while it was loaded"));
  hub_.have_faults({{"status", {{kWeights, 404}}}});
  EXPECT_THAT(failure(options()), HasSubstr("has no vae/model.safetensors any more"));
  expect_no_model();
}

TEST_F(PullFiles, WithHostileNamesAreRefusedBeforeAnyIsWritten) {
  for (const char* const name : {"../../../evil", "/evil", "a/../../b", "a//b"}) {
    hub_.have_faults({{"files", {"model_index.json", name}}});
    EXPECT_THAT(failure(options()), HasSubstr("would lie outside its folder")) << name;
    EXPECT_FALSE(fs::exists(cache_)) << name;
  }
}

TEST_F(PullFiles, MayHaveColonsAndBackslashesInTheirNames) {
  const std::string name = "notes/12:30 a\\b.txt";
  hub_.put("org/name/" + name, "noted");
  const auto snapshot = pull(options());
  EXPECT_EQ(read_file(snapshot / name), "noted");
  EXPECT_EQ(read_file(snapshot / kWeights), weights_);
}

TEST_F(PullFiles, WaitAsLongAsTheHubAsks) {
  hub_.have_faults({{"busy", {2, 1}}});
  const auto began = std::chrono::steady_clock::now();
  expect_whole(pull(options()));
  EXPECT_GE(std::chrono::steady_clock::now() - began, std::chrono::seconds(1));
  EXPECT_THAT(said_, HasSubstr("asks to wait for 1 s"));
  hub_.put("org/other/a.txt", "a");
  hub_.have_faults({{"busy", {1000, 3600}}});
  EXPECT_THAT(failure(options("org/other")), HasSubstr("asks to be left alone for 3600 s"));
}

TEST_F(PullFiles, WaitUntilTheHubsLimitIsReset) {
  hub_.have_faults({{"limited", {1, "\"resolvers\";r=0;t=1"}}});
  expect_whole(pull(options()));
  EXPECT_THAT(said_, HasSubstr("asks to wait for 2 s"));
}

TEST_F(PullFiles, OfAGatedModelNeedItsLicence) {
  hub_.have_faults({{"gated", true}});
  auto asked = options();
  EXPECT_THAT(failure(asked), testing::AllOf(HasSubstr("accept its licence at " + hub_.endpoint() +
                                                       "/org/name, then set HF_TOKEN")));
  asked.access.token = "other-secret";
  asked.access.token_source = "HF_TOKEN";
  const auto refused = failure(asked);
  EXPECT_THAT(refused, HasSubstr("with the account of the token in HF_TOKEN"));
  EXPECT_THAT(refused, testing::Not(HasSubstr("other-secret")));
  expect_no_model();
  asked.access.token = "good";
  expect_whole(pull(asked));
  for (const auto& request : hub_.requests())
    EXPECT_TRUE(request["where"] != "network" || request["token"] == "") << request;
}

// Each message that names the hub, and where its page is.
TEST_F(PullFiles, KeepThePasswordOfTheHubToThemselves) {
  auto asked = options();
  asked.access.endpoint.insert(asked.access.endpoint.find("//") + 2, "user:sekret@");
  const auto expect_secret_kept = [&](const std::string& words) {
    EXPECT_THAT(failure(asked), testing::AllOf(HasSubstr(words), testing::Not(HasSubstr("user")),
                                               testing::Not(HasSubstr("sekret"))));
  };
  hub_.have_faults({{"gated", true}});
  expect_secret_kept("accept its licence at " + hub_.endpoint() + "/org/name");
  hub_.have_faults({{"page", true}});
  expect_secret_kept("does not answer as a hub of models does");
  asked.name = *hub_name("org/nothing");
  hub_.have_faults(nlohmann::json::object());
  expect_secret_kept("has no org/nothing");
  asked.access.offline_by = "HF_HUB_OFFLINE";
  expect_secret_kept("HF_HUB_OFFLINE forbids to ask 127.0.0.1");
  asked.access.offline_by.clear();
  asked.access.endpoint = "http://user:sekret@127.0.0.1:1";
  expect_secret_kept("cannot reach 127.0.0.1:1");
  EXPECT_THAT(said_, testing::Not(HasSubstr("sekret")));
}

TEST_F(PullFiles, AreRefusedForAWrongTokenOrName) {
  hub_.have_faults({{"token", "good"}});
  auto asked = options();
  asked.access.token = "wrong-secret";
  asked.access.token_source = "HF_TOKEN";
  const auto refused = failure(asked);
  EXPECT_THAT(refused, HasSubstr("refuses the token in HF_TOKEN: Invalid credentials"));
  EXPECT_THAT(refused, testing::Not(HasSubstr("wrong-secret")));
  hub_.have_faults(nlohmann::json::object());
  EXPECT_THAT(failure(options("org/nothing")), HasSubstr("has no org/nothing, or it is private"));
  hub_.have_faults({{"page", true}});
  EXPECT_THAT(failure(options()), HasSubstr("does not answer as a hub of models does"));
}

TEST_F(PullFiles, DoNotStartWithoutSpace) {
  hub_.have_faults({{"size", {{kWeights, 1'000'000'000'000'000}}}});
  EXPECT_THAT(failure(options()), HasSubstr("of free space, 1000 TB of org/name are missing"));
  EXPECT_TRUE(ranges().empty());
}

TEST_F(PullFiles, ComeSeveralAtOnce) {
  hub_.put("org/name/b.safetensors", "b");
  hub_.have_faults({{"together", 2}});
  auto asked = options();
  asked.workers = 2;
  EXPECT_NO_THROW(pull(asked));
}

TEST_F(PullFiles, AreNotAskedForOffline) {
  auto asked = options();
  asked.access.offline_by = "HF_HUB_OFFLINE";
  EXPECT_THAT(failure(asked), HasSubstr("HF_HUB_OFFLINE forbids to ask 127.0.0.1"));
  EXPECT_TRUE(hub_.requests().empty());
}

TEST_F(PullFiles, ThatWereDamagedHereAreFoundIfAsked) {
  const auto snapshot = pull(options());
  auto damaged = weights_;
  damaged[5] ^= 1;
  write_file(snapshot / kWeights, damaged);
  pull(options());  // of the right size
  EXPECT_EQ(read_file(snapshot / kWeights), damaged);
  auto asked = options();
  asked.checks_all = true;
  expect_whole(pull(asked));
  EXPECT_THAT(said_, HasSubstr("vae/model.safetensors is damaged"));
}

TEST_F(PullFiles, AreWrittenByOneProcessAtATime) {
  hub_.have_faults({{"cut", {{kWeights, {0, 1}}}}});
  auto impatient = options();
  impatient.patience.attempts = 1;
  failure(impatient);
  std::string name = weights_blob();
  name.erase(name.find('.'));
  const auto lock = cache_ / ".locks/models--org--name" / (name + ".lock");
  const int held = ::open(lock.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(held, 0);
  ASSERT_EQ(::flock(held, LOCK_EX), 0);
  const std::string wait = "waiting for another process that loads vae/model.safetensors";
  expect_whole(pull(options(), [&] {
    if (said_.find(wait) != std::string::npos) ::flock(held, LOCK_UN);
  }));
  EXPECT_THAT(said_, HasSubstr(wait));
  ::close(held);
}

TEST_F(PullFiles, StopWhenAsked) {
  hub_.have_faults({{"stall", {{kWeights, 1000}}}});
  std::stop_source stop;
  Pull pull(options(), {.progress =
                            [&](const PullProgress& progress) {
                              if (progress.received >= 1000) stop.request_stop();
                            },
                        .stop = stop.get_token()});
  const auto files = pull.describe(pull.listing().paths);
  EXPECT_THROW(pull.fetch(files), Cancelled);
  expect_no_model();
}

}  // namespace braid::net::pull_test
