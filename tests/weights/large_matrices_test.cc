// Matrices of more numbers than are decoded, changed or copied at once.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "comm/thread.h"
#include "files.h"
#include "weights/adapters/adapted_tensors.h"
#include "weights/files/safetensors_writer.h"
#include "weights/weights.h"

namespace braid::large_matrices_test {

using namespace testing_files;

// Two runs and a few rows more.
constexpr std::int64_t kCodedRows = 1100, kCodedColumns = 1000;

TEST(LargeMatrices, OfFloat8AreTheirCodesTimesTheirScales) {
  const TemporaryFolder folder;
  const auto codes = at::randn({kCodedRows, kCodedColumns}).to(at::kFloat8_e4m3fn);
  const auto scales = at::rand({kCodedRows, 1}) + 0.5;
  write_file(folder / "m.safetensors",
             write_safetensors({{"a.weight", codes}, {"a.weight_scale", scales}}));
  const auto want = codes.to(at::kFloat) * scales;
  for (const auto& split : {column_parallel(), row_parallel()})
    run_ranks({.size = 2}, [&](const Group& ranks) {
      const Weights w(Checkpoint::open(folder.path(), "m"), {}, {.tensor_parallel = ranks},
                      {{"a", split}});
      const auto got = (w / "a").matrix("weight", {kCodedRows, kCodedColumns}).values_NC;
      const std::int64_t dim = split.split == Split::kColumns ? 0 : 1;
      EXPECT_TRUE(at::equal(got, take_share(want, dim, ranks)));
    });
}

// More than four million.
constexpr std::int64_t kRows = 2200, kColumns = 2000;

TEST(LargeMatrices, AreChangedByAdaptersInAllTheirRows) {
  const TemporaryFolder folder;
  const auto base = at::randn({kRows, kColumns});
  const auto up = at::randn({kRows, 2}), down = at::randn({2, kColumns});
  write_file(folder / "m.safetensors", write_safetensors({{"a.weight", base}}));
  write_file(folder / "lora.safetensors",
             write_safetensors({{"a.lora_A.weight", down}, {"a.lora_B.weight", up}}));
  const auto want = base + up.mm(down);
  const ShardingTable table = {{"a", column_parallel({2000, 200})}};
  const auto loaded = [&](const Group& ranks) {
    const auto unmerged = std::make_shared<UnmergedAdapters>(
        AdaptedPart{.names = {.prefixes = {""}, .tables = {{}}},
                    .shardings = table,
                    .others = {},
                    .warn = [](const std::string& warning) { ADD_FAILURE() << warning; }},
        at::kCPU);
    const Weights w(adapted_tensors(stored_tensors(Checkpoint::open(folder.path(), "m"), {}),
                                    open_adapters({{.file = folder / "lora.safetensors"}}),
                                    AdapterMode::kAuto, unmerged),
                    {.tensor_parallel = ranks}, table);
    const auto got = (w / "a").matrix("weight", {kRows, kColumns}).values_NC;
    w.finish();
    return got;
  };
  EXPECT_LT((loaded({}) - want).abs().max().item<double>(), 1e-5);
  run_ranks({.size = 2}, [&](const Group& ranks) {
    const auto rank = ranks.rank();
    const auto mine =
        at::cat({want.narrow(0, 1000 * rank, 1000), want.narrow(0, 2000 + 100 * rank, 100)});
    EXPECT_LT((loaded(ranks) - mine).abs().max().item<double>(), 1e-5) << rank;
  });
}

}  // namespace braid::large_matrices_test
