// Ranks as processes: the pictures of one rank, and an end for all when one fails.
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>

#include "base/file.h"
#include "image/png.h"
#include "processes.h"

namespace braid::processes_test {

using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

TEST_F(Processes, MakeThePictureThatThreadsMake) {
  const Arguments layout = {"--ulysses", "2", "--tp", "2"};
  ASSERT_EQ(braid(picture("threads.png", layout)).exit_code, 0);
  const auto ranks = finish(start(4, picture("processes.png", layout)));
  for (const auto& rank : ranks) EXPECT_EQ(rank.exit_code, 0) << rank.err;
  EXPECT_EQ(ranks[0].out, "processes.png\n");
  EXPECT_THAT(ranks[0].err, Not(HasSubstr("the link between the ranks"))) << "they share cores";
  for (const int r : {1, 2, 3}) {
    EXPECT_EQ(ranks[std::size_t(r)].out, "");
    EXPECT_EQ(ranks[std::size_t(r)].err, "");
  }
  EXPECT_EQ(contents("processes.png"), contents("threads.png"));
}

// Each rank has cores of its own here, like the ranks of two machines. Stages that one picture
// follows through are slower than one rank over any link.
TEST_F(Processes, WarnOfALinkThatMakesTheirSplitSlower) {
  cpu_set_t before, own;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  if (CPU_COUNT(&before) < 2) GTEST_SKIP() << "there is one core";
  const Arguments layout = {"--pp", "2"};
  ASSERT_EQ(braid(picture("threads.png", layout)).exit_code, 0);
  const auto port = free_port();
  Running running;
  for (int rank = 0, core = 0; rank < 2; ++core) {
    if (!CPU_ISSET(core, &before)) continue;
    CPU_ZERO(&own);
    CPU_SET(core, &own);
    ASSERT_EQ(::sched_setaffinity(0, sizeof own, &own), 0);
    running.push_back(start_rank(rank++, 2, port, picture("processes.png", layout)));
    ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
  }
  const auto ranks = finish(running);
  for (const auto& rank : ranks) EXPECT_EQ(rank.exit_code, 0) << rank.err;
  EXPECT_THAT(ranks[0].err, HasSubstr("warning: the link between the ranks gives "));
  EXPECT_EQ(ranks[1].err, "");
  EXPECT_EQ(contents("processes.png"), contents("threads.png"));
}

using SlowProcesses = Processes;

TEST_F(SlowProcesses, ReportTheMemoryOfEach) {
  const auto report = [&](std::vector<Finished> ranks) {
    for (const auto& rank : ranks) EXPECT_EQ(rank.exit_code, 0) << rank.err;
    return nlohmann::json::parse(ranks.front().out)["rank_peaks"];
  };
  const Arguments arguments = {"--tp", "2", "--json"};
  const auto threads = report({braid(picture("x.png", arguments))});
  const auto processes = report(finish(start(2, picture("x.png", arguments))));
  ASSERT_EQ(threads.size(), 2u);
  ASSERT_EQ(processes.size(), 2u);
  EXPECT_EQ(threads[0], threads[1]);
  EXPECT_EQ(threads[0]["resident_shared_by"], 2);
  for (const auto& rank : processes) {
    EXPECT_EQ(rank["device"], "cpu");
    EXPECT_EQ(rank["resident_shared_by"], 1);
    for (const auto* const phase : {"load", "text", "denoise", "decode"})
      EXPECT_GT(rank["resident_bytes"][phase].get<double>(), 50e6) << phase;
  }
}

TEST_F(SlowProcesses, ProveTheirLayout) {
  const auto ranks =
      finish(start(2, {"verify", "-m", kDemoModel, "--ring", "2", "--size", "64x64"}));
  for (const auto& rank : ranks) EXPECT_EQ(rank.exit_code, 0) << rank.err;
  EXPECT_THAT(ranks[0].out, HasSubstr("right: every part is within"));
  const auto wrong = finish(start(
      2, {"verify", "-m", kDemoModel, "--ring", "2", "--size", "64x64", "--inject", "drop-lse"}));
  for (const auto& rank : wrong) EXPECT_EQ(rank.exit_code, 1) << rank.err;
  EXPECT_THAT(wrong[0].out, HasSubstr("wrong: double_blocks.0"));
}

// A fault that nothing shows proves nothing of the layout.
TEST_F(Processes, AreNotCalledRightWhereAFaultIsMissed) {
  const auto missed = braid({"verify", "-m", kDemoModel, "--ring", "2", "--size", "64x64",
                             "--inject", "drop-lse", "--tolerance", "1e6"});
  EXPECT_EQ(missed.exit_code, 1) << missed.err;
  EXPECT_THAT(missed.out, HasSubstr("undecided: the injected fault changes no part beyond"));
}

TEST_F(Processes, RefuseALayoutForAnotherNumberOfRanks) {
  const auto ranks = finish(start(2, picture("x.png", {"--tp", "3"})));
  EXPECT_EQ(ranks[0].exit_code, 2);
  EXPECT_EQ(ranks[0].err,
            "braid: dp 1 x cfg 1 x pp 1 x ring 1 x ulysses 1 x tp 3 = 3, but torchrun started "
            "2 ranks; if no launcher started this process, WORLD_SIZE is left over from another: "
            "BRAID_LAUNCHER=none ignores it\n");
  EXPECT_EQ(ranks[1].exit_code, 2);
  EXPECT_EQ(ranks[1].err, "");
  EXPECT_TRUE(files().empty());
}

// One value of a thousand may differ by more than 1.
void expect_near(const Pixels& got, const Pixels& want, const std::string& what) {
  ASSERT_EQ(got.rgb.size(), want.rgb.size()) << what;
  std::size_t far = 0;
  for (std::size_t i = 0; i < want.rgb.size(); ++i) far += std::abs(got.rgb[i] - want.rgb[i]) > 1;
  EXPECT_LE(far, want.rgb.size() / 1000) << what;
}

// What each rank finds of its device is in a file; numbers of threads make these two unlike.
TEST_F(SlowProcesses, DivideByTheSpeedsThatEachHasMeasured) {
  const auto drawn = [&](const std::string& name) {
    const auto port = free_port();
    Running running;
    for (int rank = 0; rank < 2; ++rank) {
      auto arguments = picture(name, {"--tp", "2", "--shares", "auto", "--json"});
      // they share their cores: one and two threads each
      arguments.insert(arguments.end(), {"--threads", std::to_string(2 * (rank + 1))});
      running.push_back(start_rank(rank, 2, port, arguments,
                                   {"XDG_CACHE_HOME=" + (folder_ / "caches").string()}));
    }
    const auto ranks = finish(running);
    for (const auto& rank : ranks) EXPECT_EQ(rank.exit_code, 0) << rank.err;
    EXPECT_THAT(ranks[0].err, HasSubstr("shares by measured speed: "));
    EXPECT_THAT(ranks[1].err, Not(HasSubstr("shares")));
    return nlohmann::json::parse(ranks[0].out);
  };
  EXPECT_EQ(drawn("measured.png")["measured_flops"].size(), 2u);
  int kept = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "caches/braid/speeds")) {
    auto speed = nlohmann::json::parse(read_file(entry.path()));
    const bool is_first = entry.path().string().find("-1-thread.") != std::string::npos;
    speed["flops"] = is_first ? 3e9 : 8e9;
    write_file(entry.path(), speed.dump());
    ++kept;
  }
  EXPECT_EQ(kept, 2);
  const auto report = drawn("processes.png");
  EXPECT_EQ(report["measured_flops"], nlohmann::json({3e9, 8e9}));
  EXPECT_EQ(report["shares"], nlohmann::json({{"tp", {3, 8}}}));
  ASSERT_EQ(braid(picture("threads.png", {"--tp", "2", "--shares", "tp=3:8"})).exit_code, 0);
  // not the same bytes: MKL's sums may depend on the number of threads
  expect_near(decode_png(contents("processes.png"), "processes.png"),
              decode_png(contents("threads.png"), "threads.png"), "shares");
}

// The complaint itself asks which rank this is.
TEST_F(SlowProcesses, AreToldOfVariablesThatNoLauncherWrites) {
  for (const auto& wrong :
       {Arguments{"RANK=2", "WORLD_SIZE=2"}, Arguments{"RANK=0", "WORLD_SIZE=x"},
        Arguments{"RANK=0", "WORLD_SIZE=2", "BRAID_LAUNCHER=foo"}}) {
    Arguments environment = {"MASTER_ADDR=127.0.0.1", "MASTER_PORT=29999"};
    environment.insert(environment.end(), wrong.begin(), wrong.end());
    const auto end_of = [&](const Arguments& arguments) {
      return Subprocess({.arguments = arguments, .environment = environment, .folder = folder_})
          .finish();
    };
    EXPECT_EQ(end_of({"--help"}).exit_code, 0) << environment.back();
    const auto drawn = end_of(picture("x.png"));
    EXPECT_EQ(drawn.exit_code, 2) << environment.back();
    EXPECT_TRUE(drawn.err.starts_with("braid: ")) << drawn.err;
  }
}

TEST_F(Processes, EndSoonWhenOneIsKilled) {
  for (const std::size_t victim : {1, 0}) {
    const auto ranks = start(3, endless({"--ulysses", "3"}));
    ASSERT_TRUE(ranks[0]->wait_for("denoise  10,000 steps"));
    const auto began = std::chrono::steady_clock::now();
    ranks[victim]->send(SIGKILL);
    const auto ended = finish(ranks);
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(10));
    const auto& speaker = ended[victim == 0 ? 1 : 0];
    EXPECT_EQ(speaker.exit_code, 1);
    EXPECT_THAT(speaker.err,
                HasSubstr("rank " + std::to_string(victim) + " failed: its process has ended"));
    EXPECT_EQ(ended[2].exit_code, 1);
    EXPECT_TRUE(files().empty());
  }
}

TEST_F(SlowProcesses, EndWhenOneHangs) {
  const auto ranks = start(3, endless({"--ring", "3", "--deadline", "2"}));
  ASSERT_TRUE(ranks[0]->wait_for("denoise  10,000 steps"));
  const auto began = std::chrono::steady_clock::now();
  ranks[2]->send(SIGSTOP);
  const auto first = ranks[0]->finish(), second = ranks[1]->finish();
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(10));
  EXPECT_EQ(first.exit_code, 1);
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_THAT(first.err, AnyOf(HasSubstr("waited 2 s for rank 2"),
                               HasSubstr("rank 2 failed: it has not answered for 2 s")));
  EXPECT_TRUE(files().empty());
}

TEST_F(Processes, StopTogether) {
  const auto ranks = start(2, endless({"--tp", "2"}));
  ASSERT_TRUE(ranks[0]->wait_for("denoise  10,000 steps"));
  for (const auto& rank : ranks) rank->send(SIGINT);
  for (const auto& rank : finish(ranks)) EXPECT_EQ(rank.exit_code, 130) << rank.err;
  EXPECT_TRUE(files().empty());
}

TEST_F(SlowProcesses, StopWithOneThatIsStopped) {
  const auto ranks = start(2, endless({"--tp", "2"}));
  ASSERT_TRUE(ranks[0]->wait_for("denoise  10,000 steps"));
  ranks[1]->send(SIGTERM);
  const auto ended = finish(ranks);
  EXPECT_EQ(ended[0].exit_code, 1);
  EXPECT_THAT(ended[0].err, HasSubstr("stopped by another rank"));
  EXPECT_EQ(ended[1].exit_code, 128 + SIGTERM);
}

TEST_F(SlowProcesses, ShareNoStandardInputAndNoPipe) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  for (const std::string file : {"-", "pipe"}) {
    const auto ranks = finish(start(2, {"generate", "--prompt-file", file, "--tp", "2"}));
    for (const auto& rank : ranks) EXPECT_EQ(rank.exit_code, 2) << file;
    EXPECT_THAT(ranks[0].err, HasSubstr("--prompt-file " + file +
                                        ": only one of the ranks that torchrun started can read "
                                        "it: give a file that all can read"));
  }
}

// Only if the build found MPI.
class Mpi : public Processes {
 protected:
  void SetUp() override {
    if (std::string(BRAID_MPIEXEC).empty()) GTEST_SKIP() << "this build has no MPI";
  }
  // Pairs of a rank count and its flags.
  void expect_picture_of_one_rank(const std::vector<std::pair<int, Arguments>>& layouts) const;
};

void Mpi::expect_picture_of_one_rank(const std::vector<std::pair<int, Arguments>>& layouts) const {
  ASSERT_EQ(braid(picture("one.png")).exit_code, 0);
  const auto one = decode_png(contents("one.png"), "one.png");
  for (const auto& [size, layout] : layouts) {
    const auto finished = mpirun(size, picture("mpi.png", layout));
    ASSERT_EQ(finished.exit_code, 0) << finished.err;
    EXPECT_EQ(finished.out, "mpi.png\n");
    expect_near(decode_png(contents("mpi.png"), "mpi.png"), one, layout[0] + " " + layout[1]);
  }
}

TEST_F(Mpi, MakesThePictureOfOneRank) { expect_picture_of_one_rank({{3, {"--ulysses", "3"}}}); }

class SlowMpi : public Mpi {};

TEST_F(SlowMpi, MakesThePictureOfOneRankInMoreLayouts) {
  expect_picture_of_one_rank({{2, {"--tp", "2"}},
                              {2, {"--ring", "2"}},
                              {2, {"--ring", "2", "--ring-form", "gather"}},
                              {2, {"--ulysses", "2"}},
                              {2, {"--dp", "2"}},
                              {4, {"--tp", "2", "--tp-modulation", "replicated", "--dp", "2"}},
                              {4, {"--tp", "2", "--ring", "2"}},
                              {4, {"--ring", "2", "--ulysses", "2"}},
                              {5, {"--ring", "5"}}});
}

TEST_F(Mpi, EndsWithTheFirstRanksSentence) {
  const auto finished = mpirun(2, picture("x.png", {"--tp", "4"}));
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_THAT(finished.err, HasSubstr("tp 4 = 4, but mpirun started 2 ranks; if no launcher"));
}

}  // namespace braid::processes_test
