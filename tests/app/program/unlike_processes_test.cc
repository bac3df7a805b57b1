// Ranks as processes: what one or all of them refuse is told once, and ends all.
#include <map>

#include "base/file.h"
#include "processes.h"

namespace braid::unlike_processes_test {

using namespace processes_test;
using testing::HasSubstr;
class UnlikeProcesses : public Processes {};

using SlowUnlikeProcesses = UnlikeProcesses;

TEST_F(SlowUnlikeProcesses, ComplainOnceAboutWhatAllFind) {
  auto arguments = picture("x.png", {"--tp", "2"});
  arguments[3] = "/no/such/model";
  const auto ranks = finish(start(2, arguments));
  EXPECT_EQ(ranks[0].exit_code, 2);
  EXPECT_EQ(ranks[0].err, "braid: there is no model at /no/such/model\n");
  EXPECT_EQ(ranks[1].exit_code, 2);
  EXPECT_EQ(ranks[1].err, "");
}

// Each has a command line and files of its own, and a picture of two of them is nobody's.
TEST_F(SlowUnlikeProcesses, RefuseToDrawDifferentPictures) {
  std::filesystem::copy(kDemoModel, folder_ / "trained", std::filesystem::copy_options::recursive);
  const auto weights = folder_ / "trained/transformer/diffusion_pytorch_model.safetensors";
  auto bytes = read_file(weights, std::size_t(1) << 30);
  for (std::size_t i = bytes.size() / 2; i < bytes.size(); ++i) bytes[i] ^= 1;
  write_file(weights, bytes);
  const std::map<std::string, Arguments> by_fact = {
      {"has guidance 7 and rank 0 has 3.5", {"--guidance", "7"}},
      {"differs from rank 0 in the prompts", {"--prompt-2", "a red square"}},
      {"has dtype bfloat16", {"--dtype", "bfloat16"}},
      {"differs from rank 0 in the weights of the transformer", {"-m", "trained"}}};
  for (const auto& [fact, given] : by_fact) {
    const auto port = free_port();
    const auto usual = picture("x.png", {"--tp", "2", "--seed", "7", "--guidance", "3.5"});
    auto other = usual;
    other.insert(other.end(), given.begin(), given.end());
    Running ranks;
    ranks.push_back(start_rank(0, 2, port, usual));
    ranks.push_back(start_rank(1, 2, port, other));
    const auto ended = finish(ranks);
    EXPECT_EQ(ended[0].exit_code, 2) << fact;
    EXPECT_EQ(ended[1].exit_code, 2) << fact;
    EXPECT_THAT(ended[0].err, HasSubstr("should draw the same picture, but rank 1 " + fact));
    EXPECT_FALSE(std::filesystem::exists(folder_ / "x.png")) << fact;
  }
}

// Whatever is wrong is told by one rank, and both end: the first one does not wait for a rank that
// will not come, nor blame a variable for it.
TEST_F(SlowUnlikeProcesses, AreToldOfALaterRanksCommandLine) {
  const std::map<std::string, Arguments> by_sentence = {
      {"--nope", picture("x.png", {"--tp", "2", "--nope"})},
      {"--steps should be a whole number", picture("x.png", {"--tp", "2", "--steps", "abc"})},
      {"no prompt", {"generate", "-m", kDemoModel, "--tp", "2"}},
      {"tp 4 = 4, but torchrun started 2 ranks", picture("x.png", {"--tp", "4"})},
      {"cannot read \"no-such-file\"", {"generate", "--prompt-file", "no-such-file"}},
      {"rank 1 differs from rank 0 in the way of choosing shares",
       picture("x.png", {"--tp", "2", "--shares", "auto"})},
      {"rank 1 has the command serve and rank 0 has generate",
       {"serve", "-m", kDemoModel, "--port", "0", "--no-key", "--tp", "2"}},
      {"rank 1 has the command verify and rank 0 has generate",
       {"verify", "-m", kDemoModel, "--tp", "2", "--size", "64x64"}}};
  for (const auto& [sentence, wrong] : by_sentence) {
    const auto port = free_port();
    Running ranks;
    ranks.push_back(start_rank(0, 2, port, picture("x.png", {"--tp", "2"})));
    ranks.push_back(start_rank(1, 2, port, wrong));
    const auto ended = finish(ranks);
    EXPECT_EQ(ended[0].exit_code, 2) << sentence;
    EXPECT_EQ(ended[1].exit_code, 2) << sentence;
    EXPECT_THAT(ended[0].err, HasSubstr(sentence));
    EXPECT_THAT(ended[0].err, HasSubstr("rank 1")) << sentence;
    EXPECT_EQ(ended[1].err, "") << sentence;
  }
}

TEST_F(UnlikeProcesses, SayWhatIsWrongWhereTheFirstRankIsNot) {
  const auto lonely = start_rank(1, 2, free_port(), picture("x.png", {"--nope"}))->finish();
  EXPECT_EQ(lonely.exit_code, 2);
  EXPECT_THAT(lonely.err, HasSubstr("braid: rank 1: "));
  EXPECT_THAT(lonely.err, HasSubstr("--nope"));
}

TEST_F(UnlikeProcesses, RefuseACommandLineWithOneVoice) {
  const auto ranks = finish(start(3, picture("x.png", {"--tp", "3", "--nope"})));
  for (const auto& rank : ranks) EXPECT_EQ(rank.exit_code, 2) << rank.err;
  EXPECT_THAT(ranks[0].err, HasSubstr("--nope"));
  EXPECT_EQ(ranks[1].err, "");
  EXPECT_EQ(ranks[2].err, "");
}

// A seed that one rank draws and another is given is told as any difference.
TEST_F(SlowUnlikeProcesses, CompareSeedsThatOneOfThemDraws) {
  const auto drawn_with = [&](const std::string& first, const std::string& second) {
    const auto port = free_port();
    Running ranks;
    ranks.push_back(start_rank(0, 2, port, picture("x.png", {"--tp", "2", "--seed", first})));
    ranks.push_back(start_rank(1, 2, port, picture("x.png", {"--tp", "2", "--seed", second})));
    return finish(ranks);
  };
  const auto unlike = drawn_with("random", "7");
  for (const auto& rank : unlike) EXPECT_EQ(rank.exit_code, 2) << rank.err;
  EXPECT_THAT(unlike[0].err, HasSubstr("rank 1 has seed 7 and rank 0 has "));
  for (const auto& rank : drawn_with("7", "random")) EXPECT_EQ(rank.exit_code, 0) << rank.err;
}

}  // namespace braid::unlike_processes_test
