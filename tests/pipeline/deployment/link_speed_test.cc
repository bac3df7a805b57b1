// A link between ranks that is measured, and the warning before a split that it makes slower than
// one card.
#include "pipeline/deployment/link_speed.h"

#include <gmock/gmock.h>

#include "comm/worlds.h"
#include "pipeline/planner/fastest.h"

namespace braid::link_speed_test {

using testing::HasSubstr;
using testing::StartsWith;

constexpr LinkSpec kFast{"measured", 1e12, 1e-6}, kSlow{"measured", 1e9, 30e-6};
constexpr double kSlowSpeed = 50e6, kSlowLatency = 2e-3;

// Takes its time over every message, as a slow network does.
class SlowWire : public SocketWire {
 public:
  using SocketWire::SocketWire;

  Ticket send(const Message& message) override {
    if (message.channel != kControl)
      std::this_thread::sleep_for(
          std::chrono::duration<double>(kSlowLatency + double(message.size) / kSlowSpeed));
    return SocketWire::send(message);
  }
};

// What the first of two ranks returns.
template <typename Body>
auto over_slow_wires(const Body& body) {
  decltype(body(Group())) of_first;
  on_connected_ranks(2, [&](int rank, auto sockets) {
    ProcessWorld world(std::make_unique<SlowWire>(rank, std::move(sockets)),
                       std::chrono::seconds(60));
    world.run([&](const Group& group) {
      auto mine = body(group);
      if (rank == 0) of_first = std::move(mine);
    });
  });
  return of_first;
}

TEST(LinkSpeed, IsWhatASlowWireTakes) {
  const auto link =
      over_slow_wires([](const Group& world) { return measure_link(world, at::kCPU); });
  EXPECT_LT(link.speed, 1.4 * kSlowSpeed);
  EXPECT_GT(link.speed, 0.02 * kSlowSpeed);  // a busy machine makes it slower still
  EXPECT_GE(link.latency, kSlowLatency);
}

TEST(LinkSpeed, IsTheSameOnAllThreads) {
  std::vector<LinkSpec> links(3);
  run_ranks({.size = 3}, [&](const Group& world) {
    links[std::size_t(world.rank())] = measure_link(world, at::kCPU);
  });
  EXPECT_GT(links[0].speed, 0);
  for (const auto& link : links) {
    EXPECT_EQ(link.speed, links[0].speed);
    EXPECT_EQ(link.latency, links[0].latency);
  }
}

Deployment flux_on(const Host& host, const Layout& layout) {
  return deploy({.pipeline = {.model = "", .devices = {"cuda:0-1"}, .layout = layout},
                 .synthetic = "flux1-dev"},
                host);
}

// A step's 76 all_reduces of 4096 + 512 tokens' 3072 widths in bfloat16 cross the link once.
TEST(SlowLink, TakesTheBytesOfAStepOverItsSpeed) {
  const auto host = described_host(devices_named("", "2xh100"));
  const auto deployment = flux_on(host, {.tp = 2});
  const Request request{.prompts = {"a"}, .width = 1024, .height = 1024, .steps = 10};
  const auto job = job_of(deployment, request);
  const auto slower = slower_over(job, deployment.places, kSlow, host);
  ASSERT_TRUE(slower);
  const double exchanged = 76 * (4608.0 * 3072 * 2 / 1e9 + 30e-6);
  EXPECT_NEAR(slower->alone, 10 * 0.1235, 0.01);
  EXPECT_NEAR(slower->split, 10 * (exchanged + 0.1235 / 2), 0.3);
  EXPECT_FALSE(slower->is_so_by_data_sheets);
  EXPECT_FALSE(slower_over(job, deployment.places, kFast, host));
}

TEST(SlowLink, IsToldOfWhereItsSplitIsSlower) {
  const auto host = described_host(devices_named("", "2xh100"));
  const Request request{.prompts = {"a"}};
  auto deployment = flux_on(host, {.tp = 2});
  const auto said = slow_link_warning(deployment, request, kSlow, host);
  ASSERT_TRUE(said);
  EXPECT_THAT(*said, StartsWith("the link between the ranks gives 1.00 GB/s and takes 30.0 us a "
                                "message: with it tp 2 is predicted to take "));
  EXPECT_THAT(*said, HasSubstr(" s a picture, cuda:0 alone "));
  EXPECT_FALSE(slow_link_warning(deployment, request, kFast, host));
  EXPECT_TRUE(slow_link_warning(flux_on(host, {.fit = Fit::kAuto}), request, kSlow, host));
  deployment.places.are_threads = false;
  EXPECT_THAT(slow_link_warning(deployment, request, kSlow, host).value_or(""),
              HasSubstr(" s a picture, one rank alone "));
  auto unknown = host;
  unknown.card = [](at::Device) { return std::optional<DeviceSpec>(); };
  EXPECT_FALSE(slow_link_warning(deployment, request, kSlow, unknown));
  deployment.places = {.grid = {.tp = 2}, .devices = {"cuda:0", "cuda:0"}};
  EXPECT_FALSE(slow_link_warning(deployment, request, kSlow, host));
}

// Stages that one picture follows through never pay.
TEST(SlowLink, IsNotBlamedForStages) {
  const auto host = described_host(devices_named("", "2xh100"));
  auto deployment = flux_on(host, {.pp = 2});
  deployment.places.are_threads = false;
  for (const auto& link : {kFast, kSlow}) {
    const auto said = slow_link_warning(deployment, {.prompts = {"a"}}, link, host).value_or("");
    EXPECT_THAT(said, StartsWith("pp 2 is predicted to take "));
    EXPECT_THAT(said, HasSubstr(" s a picture over a link that costs nothing, one rank alone "));
  }
}

// slower_split() says so before the model is loaded.
TEST(SlowLink, IsNotBlamedForUnlikeCards) {
  const auto host = described_host(devices_named("", "rtx-3090,rtx-5090"));
  DeployOptions asked{.pipeline = {.model = "", .devices = {"cuda:0-1"}, .layout = {.tp = 2}},
                      .synthetic = "flux1-dev"};
  asked.pipeline.memory.quantize = asked.pipeline.memory.quantize_text = Quantize::kInt8;
  const auto deployment = deploy(asked, host);
  EXPECT_TRUE(slower_over(job_of(deployment, {.prompts = {"a"}}), deployment.places, kSlow, host)
                  ->is_so_by_data_sheets);
  EXPECT_FALSE(slow_link_warning(deployment, {.prompts = {"a"}}, kSlow, host));
}

Deployment demo(const Layout& layout) {
  return deploy(
      {.model = std::filesystem::path(BRAID_SOURCE_DIR) / "models/demo", .layout = layout});
}

TEST(LinkBetweenRanks, OfSeveralMachinesIsMeasuredAndToldOf) {
  auto deployment = demo({.tp = 2});
  deployment.places.are_threads = false;
  const auto measured = [&](int ranks_on_these_cores) {
    return over_slow_wires([&](const Group& world) {
      return link_between_ranks(world, deployment, ranks_on_these_cores, this_host());
    });
  };
  EXPECT_FALSE(measured(2)) << "the ranks share their cores";
  const auto link = measured(1);
  ASSERT_TRUE(link);
  const Request request{.prompts = {"a"}, .width = 64, .height = 64};
  EXPECT_TRUE(slow_link_warning(deployment, request, *link, this_host()));
  EXPECT_FALSE(slow_link_warning(deployment, request, {"measured", 1e15, 0}, this_host()));
}

TEST(LinkBetweenRanks, IsNotMeasuredForThreadsOnACpuNorForWholePictures) {
  run_ranks({.size = 2}, [](const Group& world) {
    EXPECT_FALSE(link_between_ranks(world, demo({.tp = 2}), world.size(), this_host()));
    auto pictures = demo({.dp = 2});
    pictures.places.are_threads = false;
    EXPECT_FALSE(link_between_ranks(world, pictures, 1, this_host()));
  });
}

}  // namespace braid::link_speed_test
