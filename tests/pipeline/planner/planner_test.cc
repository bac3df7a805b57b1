// The planner: what it lists, in which order, and that runs agree.
#include "pipeline/planner/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <ctime>
#include <set>

#include "base/error.h"
#include "comm/thread.h"
#include "pipeline/engine/engine.h"
#include "pipeline/families/flux/flux.h"
#include "pipeline/planner/planned.h"

namespace braid::planner_test {

using testing::HasSubstr;

TEST(Grids, AreAllProductsOfSixFactors) {
  EXPECT_EQ(grids_of(1).size(), 1u);
  EXPECT_EQ(grids_of(8).size(), 56u);       // C(3+5, 5)
  EXPECT_EQ(grids_of(12).size(), 21u * 6);  // of 2^2 and of 3
  EXPECT_EQ(grids_of(1024).size(), 3003u);  // C(10+5, 5)
  std::set<std::string> names;
  for (const auto& grid : grids_of(24)) {
    EXPECT_EQ(grid.product(), 24);
    names.insert(layout_name(grid));
  }
  EXPECT_EQ(names.size(), grids_of(24).size());
  EXPECT_EQ(layout_name({}), "one rank");
  EXPECT_EQ(layout_name({.ring = 2, .tp = 4}), "ring 2 x tp 4");
}

TEST(Grids, PlaceRanksAsAMeshDoes) {
  const Degrees grid{.dp = 2, .cfg = 2, .ring = 3, .ulysses = 2, .tp = 2};
  run_ranks({.size = 48}, [&](const Group& world) {
    const auto mesh = make_mesh(world, grid);
    const auto place = place_of(grid, world.rank());
    EXPECT_EQ(place.dp, mesh.dp.rank());
    EXPECT_EQ(place.cfg, mesh.cfg.rank());
    EXPECT_EQ(place.ring, mesh.ring.rank());
    EXPECT_EQ(place.ulysses, mesh.ulysses.rank());
    EXPECT_EQ(place.tp, mesh.tp.rank());
  });
}

TEST(Planner, SortsWhatFitsByTimeAndSaysWhyOthersAreOut) {
  auto job = flux_dev();
  const auto layouts = plan_layouts(job, machine_of("8xh100"));
  ASSERT_EQ(layouts.size(), 56u);
  bool all_fit = true;
  double last = 0;
  for (const auto& l : layouts) {
    EXPECT_TRUE(all_fit || !l.fits()) << layout_name(l.grid);
    all_fit = all_fit && l.fits();
    EXPECT_EQ(l.fits(), l.reason.empty());
    if (!l.fits()) continue;
    EXPECT_GE(l.seconds_per_picture, last);
    last = l.seconds_per_picture;
  }
  const auto reason = [&](const std::string& devices, const Degrees& grid) {
    return planned(job, devices, grid).reason;
  };
  EXPECT_EQ(reason("5xh100", {.tp = 5}), "");
  EXPECT_EQ(reason("25xh100", {.tp = 25}),
            "tp 25 leaves a rank without a head: the transformer has 24");
  EXPECT_EQ(reason("600xh100", {.ulysses = 600}),
            "ring x ulysses of 600 leaves a rank without a text token, there are 512");
  EXPECT_EQ(reason("2xh100", {.cfg = 2}),
            "cfg 2 needs as many branches, there is 1: give a negative prompt and a "
            "true guidance scale above 1");
  EXPECT_EQ(reason("2xh100", {.dp = 2}), "dp 2 leaves a rank without a picture, there is 1");
  EXPECT_EQ(reason("58xh100", {.pp = 58}),
            "pipeline parallelism 58 leaves a rank without a block, there are 57");
  EXPECT_THAT(reason("4xrx-7800-xt", {.ring = 4}),
              HasSubstr("not enough memory: a rank needs 35.4 GB, its device has 16.3 GB to use"));
  job.branches = job.num_pictures = 2;
  EXPECT_EQ(reason("4xh100", {.dp = 2, .cfg = 2}), "");
  EXPECT_EQ(reason("4xh100", {.cfg = 4}), "cfg 4 needs as many branches, there are 2");
}

// What the planner calls possible runs; everything else is refused.
TEST(SlowPlanner, AgreesWithRunsOnWhatIsPossible) {
  const PipelineOptions options{
      .model = std::filesystem::path(BRAID_SOURCE_DIR) / "tests/data/parity/basic/model",
      .dtype = Dtype::kFloat32};
  auto job = job_of(deploy(options), {});
  job.width = job.height = 32;  // 4 image tokens
  job.text_tokens = 5;
  job.steps = 1;
  job.num_pictures = 6;
  const Request request{.prompts = {"a"},
                        .width = 32,
                        .height = 32,
                        .steps = 1,
                        .max_sequence_length = 5,
                        .num_images = 6,
                        .batch_size = 6};
  int refused = 0;
  for (const int ranks : {2, 5, 6})
    for (const auto& layout : plan_layouts(job, machine_of(std::to_string(ranks) + "xb200"))) {
      const auto& g = layout.grid;
      auto with_layout = options;
      with_layout.layout = {
          .tp = g.tp, .ring = g.ring, .ulysses = g.ulysses, .cfg = g.cfg, .dp = g.dp, .pp = g.pp};
      bool runs = true;
      try {
        Engine(with_layout, {}).generate(request, {});
      } catch (const InputError&) {
        runs = false;
      }
      EXPECT_EQ(layout.fits(), runs) << layout_name(g) << " " << layout.reason;
      refused += !runs;
    }
  EXPECT_GT(refused, 5);
}

TEST(Planner, SharesPicturesAndBranches) {
  auto job = flux_dev();
  job.num_pictures = 8;
  job.branches = 2;
  const auto one = planned(job, "h200", {});
  const auto dp = planned(job, "2xh200", {.dp = 2}), cfg = planned(job, "2xh200", {.cfg = 2});
  EXPECT_NEAR(dp.seconds_per_picture / one.seconds_per_picture, 0.5, 0.01);
  EXPECT_NEAR(cfg.seconds_per_picture / one.seconds_per_picture, 0.5, 0.01);
  EXPECT_NEAR(cfg.step.compute / one.step.compute, 0.5, 1e-9);
  job.num_pictures = 3;  // two rounds for two groups
  EXPECT_NEAR(planned(job, "2xh200", {.dp = 2}).seconds_per_picture / one.seconds_per_picture,
              2.0 / 3, 0.01);
}

// Items follow each other through P stages in n + P - 1 ticks.
TEST(Planner, CountsTheBubblesOfALayerSplit) {
  auto job = surveyed({.family = make_flux_family({.flux = {.num_double = 0, .num_single = 40}})});
  auto machine = machine_of("4xb200");
  const Degrees four{.pp = 4};
  machine.devices.front().memory += double(bytes_of_others(surveyed(job), four, 0).text_encoders);
  for (const int pictures : {1, 4}) {
    job.num_pictures = pictures;  // a batch of one for each stage
    const auto split = plan_layout(job, machine, {.pp = 4});
    auto machine_of_one = machine;
    machine_of_one.devices.resize(1);
    auto all_at_once = job;
    all_at_once.batch_size = pictures;
    const auto one = plan_layout(all_at_once, machine_of_one, {}).step.total();
    EXPECT_NEAR(split.step.total() / one, pictures == 1 ? 1 : 7.0 / 16, 0.01) << pictures;
    EXPECT_GT(split.step.bubbles, 0);
  }
}

TEST(Planner, PutsBlocksWhereThereIsRoom) {
  const auto job = surveyed(flux_dev());
  const auto count = [](const Stage& s) { return s.num_blocks; };
  const auto stages = plan_stages(job, machine_of("3xrx-7800-xt"), {.pp = 3});
  ASSERT_EQ(stages.size(), 3u);
  EXPECT_EQ(stages[1].first_block, count(stages[0]));
  EXPECT_EQ(count(stages[0]) + count(stages[1]) + count(stages[2]), 57);
  EXPECT_LT(count(stages[0]), count(stages[1]) / 2 + 1);  // the text encoders are there
  EXPECT_TRUE(stages[0].is_first && !stages[0].is_last && stages[2].is_last);
  const auto even = plan_stages(job, machine_of("3xcpu"), {.pp = 3});  // on one shared memory
  for (const auto& stage : even) EXPECT_EQ(count(stage), 19);
}

TEST(Planner, LeavesTheHostOnlyWhereAnAxisReachesOverIt) {
  const auto job = flux_dev();
  auto machine = machine_of("16xh100");
  const auto time = [&](const Degrees& grid) {
    return plan_layout(job, machine, grid).step.total();
  };
  const Degrees inside{.ring = 2, .tp = 8}, across{.ring = 8, .tp = 2};
  const double inside_before = time(inside), across_before = time(across);
  machine.devices_per_host = 8;
  EXPECT_GT(time(inside), inside_before);
  EXPECT_GT(time(across) - across_before, 0);
  machine.network = machine.link;
  EXPECT_NEAR(time(inside), inside_before, 1e-12);
}

// The least CPU seconds per layout of a few tries: others may share the core.
double seconds_per_layout(const PlanJob& job, const Machine& machine) {
  double least = INFINITY;
  for (int attempt = 0; attempt < 3; ++attempt) {
    const auto begin = std::clock();
    const auto layouts = double(plan_layouts(job, machine).size());
    least = std::min(least, double(std::clock() - begin) / CLOCKS_PER_SEC / layouts);
  }
  return least;
}

// Twenty times the devices: a layout's cost should grow far less, or plans of clusters take
// minutes.
TEST(SlowPlanner, TakesHardlyMoreTimePerLayoutForAThousandDevices) {
  auto job = flux_dev();
  job.num_pictures = 1000;
  job.branches = 2;
  const auto many = machine_of("960xh100");  // the number up to 1024 with the most layouts
  EXPECT_EQ(plan_layouts(job, many).size(), 16'632u);
  EXPECT_LT(seconds_per_layout(job, many), 10 * seconds_per_layout(job, machine_of("48xh100")));
}

TEST(Devices, AreReadFromLists) {
  EXPECT_EQ(devices_named("", "8xh200").size(), 8u);
  EXPECT_EQ(devices_named("", "rtx-4090").front().memory, 24.0 * 1024 * 1024 * 1024);
  EXPECT_EQ(devices_named("", "2xa100,h100").back().name, "h100");
  EXPECT_EQ(devices_named("", "cpu").front().memory, 2 * devices_named("", "2xcpu")[1].memory);
  EXPECT_EQ(bytes_named("", "16GB"), 16e9);
  EXPECT_EQ(bytes_named("", "1.5GiB"), 1.5 * 1024 * 1024 * 1024);
  EXPECT_EQ(link_named("", "7.5", LinkRoute::kDirect).speed, 7.5e9);
  EXPECT_EQ(link_named("", "pcie4", LinkRoute::kThroughHost).speed,
            link_named("", "pcie4", LinkRoute::kDirect).speed / 2);
}

TEST(Devices, RefuseWhatIsNotKnownWithWhatIs) {
  const auto message = [](const auto& body) -> std::string {
    try {
      body();
    } catch (const InputError& e) {
      return e.what();
    }
    return "accepted";
  };
  EXPECT_THAT(message([] { devices_named("--devices", "4xgtx-970"); }),
              HasSubstr("'gtx-970' is not known; known are cpu, rtx-3060"));
  for (const auto* const text : {"", "0xh100", "-1xh100", "1025xh100", "600xh100,600xl4", "h100,"})
    EXPECT_THAT(message([&] { devices_named("--devices", text); }), HasSubstr("--devices should"))
        << text;
  for (const auto* const text : {"16", "GB", "-1GB", "16PB", "infGB", "16 G B"})
    EXPECT_THAT(message([&] { bytes_named("--memory", text); }), HasSubstr("such as 16GB")) << text;
  for (const auto* const text : {"pcie9", "0", "-3", "nan", "3MB/s"})
    EXPECT_THAT(message([&] { link_named("--link", text, LinkRoute::kDirect); }),
                HasSubstr("pcie3, pcie4"))
        << text;
}

// What the first block adds and what the others do are 4096 + 512 tokens of 3072 numbers of 2 bytes
// each, of every picture.
TEST(CachedSteps, AreKeptForEachPicture) {
  auto job = flux_dev();
  const auto of = [&](const Stage& stage, const Degrees& grid = {}) {
    return predict_bytes(job, grid, 0, stage);
  };
  const Stage whole = whole_transformer(job.shape()), first{.first_block = 0, .num_blocks = 20},
              second{.first_block = 20, .num_blocks = 37};
  job.num_pictures = job.batch_size = 2;
  const auto before = of(whole);
  job.caches_steps = true;
  const std::int64_t one = 4608 * 3072 * 2;
  EXPECT_EQ(of(whole).kept - before.kept, 2 * 2 * one);
  EXPECT_EQ(of(whole, {.ring = 2}).kept, 2 * one);
  EXPECT_EQ(of(second).kept, 2 * one) << "the first block is not here";
  EXPECT_EQ(of(first).kept, 2 * 2 * one);
  job.batch_size = job.num_pictures = 1;
  EXPECT_EQ(of(whole).kept, 2 * one);
  const auto activations = of(whole).activations;
  job.batch_size = job.num_pictures = 2;
  EXPECT_EQ(of(whole).activations, activations) << "one picture is evaluated after the other";
}

// Each stage has a rank on a CPU, so that a run counts blocks instead of bytes.
TEST(Planner, CutsStagesOfMixedDevicesAsARunDoes) {
  const auto job = flux_dev();
  const auto sizes = [&](const std::string& devices, const Degrees& grid) {
    std::vector<std::int64_t> counts;
    for (const auto& stage : plan_stages(job, machine_of(devices), grid))
      counts.push_back(stage.num_blocks);
    return counts;
  };
  const Degrees grid{.pp = 2, .tp = 2};
  EXPECT_EQ(sizes("h100,cpu,h100,cpu", grid), (std::vector<std::int64_t>{29, 28}));
  EXPECT_EQ(sizes("4xh100", {.pp = 2, .tp = 2, .shares = {.pp = {1, 2}}}),
            (std::vector<std::int64_t>{19, 38}));
  EXPECT_NE(sizes("4xh100", grid), (std::vector<std::int64_t>{29, 28}))
      << "double blocks are larger";
}

}  // namespace braid::planner_test
