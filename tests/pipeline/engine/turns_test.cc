// Calls that wait for each other, and those that would wait for ever.
#include "pipeline/engine/turns.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include "braid/braid.h"
#include "braid/picture_autoencoder.h"
#include "braid/transformer.h"
#include "message_of.h"

namespace braid::turns_test {

using testing::HasSubstr;

PipelineOptions options_with(const Layout& layout = {}) {
  return {.model = std::filesystem::path(BRAID_SOURCE_DIR) / "models" / "demo",
          .dtype = Dtype::kFloat32,
          .layout = layout};
}

Request small_request() {
  return {.prompts = {"a red circle"}, .width = 32, .height = 32, .steps = 1};
}

TEST(Turns, FollowEachOther) {
  const Turns turns("pipeline");
  int running = 0, most = 0;
  const auto call = [&] {
    for (int i = 0; i < 100; ++i) {
      const auto turn = turns.take({});
      most = std::max(most, ++running);
      std::this_thread::yield();
      --running;
    }
  };
  { const std::jthread one(call), other(call); }
  EXPECT_EQ(most, 1);
}

TEST(Turns, EndTheWaitOfACallThatIsStopped) {
  const Turns turns("pipeline");
  std::string said;
  {
    const auto turn = turns.take({});
    std::stop_source stop;
    std::jthread waiter(
        [&] { said = message_of<Cancelled>([&] { (void)turns.take(stop.get_token()); }); });
    stop.request_stop();
    waiter.join();
  }
  EXPECT_EQ(said, "stopped as asked, before it began");
  EXPECT_NO_THROW((void)turns.take({}));
}

// The other thread's call waits for the one whose callback this is.
TEST(SharedPipeline, StopsACallThatWaits) {
  const Pipeline pipeline(options_with());
  std::string said;
  const auto stop_another = [&](StepEnd&) {
    std::stop_source stop;
    std::jthread waiter([&] {
      const Hooks hooks{.stop = stop.get_token()};
      said = message_of<Cancelled>([&] { (void)pipeline.generate(small_request(), hooks); });
    });
    stop.request_stop();
  };
  EXPECT_EQ(pipeline.generate(small_request(), {.step_end = stop_another}).size(), 1u);
  EXPECT_THAT(said, HasSubstr("stopped as asked"));
}

TEST(SharedPipeline, RefusesCallsOfItsOwnCallbacks) {
  const Pipeline pipeline(options_with());
  std::string said;
  const auto draw = [&](const auto&) {
    EXPECT_EQ(pipeline.complete(small_request()).width, 32);
    said = message_of<Error>([&] { (void)pipeline.generate(small_request()); });
  };
  const Hooks all[] = {
      {.progress = draw}, {.picture = draw}, {.preview = draw}, {.step_end = draw}};
  for (const auto& hooks : all) {
    said = "";
    EXPECT_EQ(pipeline.generate(small_request(), hooks).size(), 1u);
    EXPECT_EQ(said, "a callback of this pipeline cannot call it: it is drawing");
  }
}

// The status of a child of fork(), as waitpid() tells it: 0 if `succeeds` returned true there. The
// child has no second rank's thread, and none of LibTorch's; an alarm ends it if it hangs.
int status_of_child(const std::function<bool()>& succeeds) {
  const auto child = ::fork();
  if (child == 0) {
    ::alarm(30);
    ::_exit(succeeds() ? 0 : 1);
  }
  int status = -1;
  return child > 0 && ::waitpid(child, &status, 0) == child ? status : -1;
}

TEST(SharedPipeline, IsRefusedInAChildOfFork) {
  auto pipeline = std::make_unique<Pipeline>(options_with({.tp = 2}));
  Pipeline replaced(options_with({.tp = 2})), other(options_with());
  (void)pipeline->generate(small_request());
  auto& same = *pipeline;
  const auto is_refused = [&] {
    replaced = std::move(other);
    *pipeline = std::move(same);
    const auto refused = "this pipeline was made before fork()";
    const auto said = message_of<Error>([&] { (void)pipeline->generate(small_request()); });
    const auto too = message_of<Error>([&] { (void)replaced.generate(small_request()); });
    pipeline.reset();
    return said.starts_with(refused) && too.starts_with(refused);
  };
  EXPECT_EQ(status_of_child(is_refused), 0);
  EXPECT_EQ(pipeline->generate(small_request()).size(), 1u) << "the parent's goes on";
  EXPECT_EQ(replaced.generate(small_request()).size(), 1u) << "the parent's goes on";
}

TEST(ModelsAlone, MayBeReplacedInAChildOfFork) {
  Transformer transformer(options_with({.tp = 2})), another(options_with());
  PictureAutoencoder autoencoder(options_with()), other(options_with());
  const auto replace_both = [&] {
    transformer = std::move(another);
    autoencoder = std::move(other);
    return true;
  };
  EXPECT_EQ(status_of_child(replace_both), 0);
}

// NOLINTBEGIN(bugprone-use-after-move): what is moved from says so itself.
TEST(MovedFrom, ModelsSaySo) {
  Pipeline pipeline(options_with());
  const auto with_model = std::move(pipeline);
  const auto moved = "this pipeline was moved from: it holds no model";
  EXPECT_EQ(message_of<Error>([&] { (void)pipeline.info(); }), moved);
  EXPECT_EQ(message_of<Error>([&] { (void)pipeline.complete({}); }), moved);
  EXPECT_EQ(message_of<Error>([&] { (void)pipeline.generate({}); }), moved);
  EXPECT_EQ(with_model.info().family, "FLUX.1");
  Transformer transformer(options_with());
  const auto with_blocks = std::move(transformer);
  EXPECT_THAT(message_of<Error>([&] {
                (void)transformer.velocity({.latents = {}, .text = {}, .timesteps = {}});
              }),
              HasSubstr("this transformer was moved from"));
  PictureAutoencoder autoencoder(options_with());
  const auto with_decoder = std::move(autoencoder);
  EXPECT_THAT(message_of<Error>([&] { (void)autoencoder.decode({}); }),
              HasSubstr("this autoencoder was moved from"));
  EXPECT_THAT(message_of<Error>([&] { (void)autoencoder.encode({}); }),
              HasSubstr("this autoencoder was moved from"));
}
// NOLINTEND(bugprone-use-after-move)

}  // namespace braid::turns_test
