// Speeds that ranks which are processes tell each other.
#include "pipeline/deployment/rank_speeds.h"

#include <gmock/gmock.h>

#include <atomic>

#include "comm/worlds.h"

namespace braid::rank_speeds_test {

using testing::ElementsAre;

// Ranks whose hosts say what they like of their processors.
std::vector<double> told(const std::vector<std::string>& kinds, const std::vector<int>& threads,
                         std::atomic<int>& measured) {
  const auto deployment = deploy({.model = std::filesystem::path(BRAID_SOURCE_DIR) / "models/demo",
                                  .layout = {.tp = int(kinds.size())}});
  std::vector<std::vector<double>> speeds(kinds.size());
  run_ranks({.size = int(kinds.size())}, [&](const Group& world) {
    const auto rank = std::size_t(world.rank());
    Host host;
    host.kind = [&](at::Device) { return kinds[rank]; };
    host.measure = [&](at::Device, const TimedProduct& product) {
      ++measured;
      return double(100 * product.threads) + double(rank);
    };
    speeds[rank] = speeds_of_processes(world, deployment, threads[rank], host);
  });
  for (const auto& of_rank : speeds) EXPECT_EQ(of_rank, speeds.front());
  return speeds.front();
}

TEST(SpeedsOfProcesses, AreMeasuredOnceForEachKind) {
  std::atomic<int> measured = 0;
  EXPECT_THAT(told({"big", "small", "big", "small"}, {1, 1, 1, 1}, measured),
              ElementsAre(100, 101, 100, 101));
  EXPECT_EQ(measured, 2);
  EXPECT_THAT(told({"alike", "alike"}, {1, 3}, measured), ElementsAre(100, 301));
}

}  // namespace braid::rank_speeds_test
