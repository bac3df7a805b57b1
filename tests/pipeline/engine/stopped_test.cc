// Calls and loads that are asked to stop, on one rank and on several.
#include <gmock/gmock.h>

#include <chrono>
#include <thread>

#include "braid/braid.h"
#include "braid/picture_autoencoder.h"
#include "braid/transformer.h"
#include "message_of.h"

namespace braid::stopped_test {

using testing::HasSubstr;

PipelineOptions options_with(const Layout& layout = {}) {
  return {.model = std::filesystem::path(BRAID_SOURCE_DIR) / "models" / "demo",
          .dtype = Dtype::kFloat32,
          .layout = layout};
}

Hooks stopped_hooks() {
  std::stop_source stop;
  stop.request_stop();
  return {.stop = stop.get_token()};
}

TEST(Stopped, LoadsEndOnAnyNumberOfRanks) {
  for (const auto& layout : {Layout{}, Layout{.tp = 2}}) {
    EXPECT_THROW(Pipeline(options_with(layout), stopped_hooks()), Cancelled);
    EXPECT_THROW(Transformer(options_with(layout), stopped_hooks()), Cancelled);
  }
  EXPECT_THROW(PictureAutoencoder(options_with(), stopped_hooks()), Cancelled);
}

// Either takes a second where it is not stopped, so that it has probably begun when it is.
TEST(Stopped, AutoencodersEndBetweenTiles) {
  const PictureAutoencoder autoencoder(options_with());
  const auto stopped_soon = [](const std::function<void(const Hooks&)>& call) {
    std::stop_source stop;
    const std::jthread stopper([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      stop.request_stop();
    });
    call({.stop = stop.get_token()});
  };
  const Latents latents{{1, 16, 96, 96}, std::vector<float>(16 * 96 * 96)};
  const Latents picture{{1, 3, 768, 768}, std::vector<float>(3 * 768 * 768)};
  EXPECT_THROW(stopped_soon([&](const Hooks& hooks) {
                 (void)autoencoder.decode(latents, VaeTiling::kOn, hooks);
               }),
               Cancelled);
  EXPECT_THROW(stopped_soon([&](const Hooks& hooks) {
                 (void)autoencoder.encode(picture, VaeTiling::kOn, hooks);
               }),
               Cancelled);
}

class StoppedPictures : public testing::TestWithParam<Layout> {
 protected:
  // Draws three and asks to stop in the callback of this one.
  static std::size_t drawn_when_stopped_in(int picture, Output output) {
    std::stop_source stop;
    int shown = 0;
    const Request request{.prompts = {"a red circle"},
                          .width = 32,
                          .height = 32,
                          .steps = 1,
                          .num_images = 3,
                          .output = output};
    const Hooks hooks{.picture =
                          [&](Picture&) {
                            if (++shown == picture) stop.request_stop();
                          },
                      .stop = stop.get_token()};
    return Pipeline(options_with(GetParam())).generate(request, hooks).size();
  }
};

TEST_P(StoppedPictures, AreReturnedIfNoneIsLeft) {
  for (const auto output : {Output::kBytes, Output::kLatents}) {
    EXPECT_EQ(drawn_when_stopped_in(3, output), 3);
    EXPECT_THROW(drawn_when_stopped_in(2, output), Cancelled);
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, StoppedPictures, testing::Values(Layout{.dp = 2}));
INSTANTIATE_TEST_SUITE_P(SlowLayouts, StoppedPictures, testing::Values(Layout{}, Layout{.tp = 2}));

}  // namespace braid::stopped_test
