// What layouts and graphs see of a denoiser's input; and blocks in pages of several.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <set>

#include "base/file.h"
#include "nn/block_list.h"
#include "nn/predict.h"
#include "temporary_folder.h"
#include "weights/files/safetensors_writer.h"
#include "weights/paging/cpu_device.h"

namespace braid::inputs_test {

constexpr std::int64_t kBatch = 2, kNoise = 5, kText = 7, kReference = 11, kControlText = 13;

// Every member; no other extent is one of these.
DenoiserInput whole_input() {
  const auto run = [](std::int64_t length) {
    return Tokens{at::zeros({kBatch, length, 3}), at::zeros({length, 4}), at::zeros({length})};
  };
  const ControlInput control{.x_BNC = at::zeros({kBatch, kNoise, 3}),
                             .text = run(kControlText),
                             .pooled_BC = at::zeros({kBatch, 3}),
                             .guidance_B = at::zeros({kBatch}),
                             .mode = at::zeros({1}),
                             .scale = at::zeros({}),
                             .modulations_BM = at::zeros({kBatch, 3})};
  const auto residual = at::zeros({kBatch, kNoise, 3});
  return {.noise = run(kNoise),
          .text = run(kText),
          .references = {run(kReference), run(kReference)},
          .extra_BLC = at::zeros({kBatch, kNoise, 3}),
          .pooled_BC = at::zeros({kBatch, 3}),
          .timestep_B = at::zeros({kBatch}),
          .target_timestep_B = at::zeros({kBatch}),
          .guidance_B = at::zeros({kBatch}),
          .controls = {control, control},
          .residuals = {.doubles = {residual, residual}, .singles = {residual}},
          .modulations_BM = at::zeros({kBatch, 3})};
}

// The dim of x of one of these extents, or kNone.
std::int64_t dim_of(const Tensor& x, const std::set<std::int64_t>& extents) {
  for (std::int64_t dim = 0; dim < x.dim(); ++dim)
    if (extents.contains(x.size(dim))) return dim;
  return DimRoles::kNone;
}

// A layout that split a tensor along no dim, or another one, would mix tokens or pictures.
TEST(DenoiserInputs, AreSplitWhereTheirBatchAndTokensAre) {
  auto in = whole_input();
  int seen = 0;
  std::set<const void*> places;
  visit_tensors(in, [&](Tensor& x, const DimRoles& dims) {
    ++seen;
    places.insert(&x);
    EXPECT_EQ(dims.batch, dim_of(x, {kBatch})) << dims.name << x.sizes();
    EXPECT_EQ(dims.tokens, dim_of(x, {kNoise, kText, kReference, kControlText}))
        << dims.name << x.sizes();
  });
  EXPECT_EQ(seen, 4 * 3 + 5 + 2 * (6 + 3) + 3 + 1);
  EXPECT_EQ(places.size(), std::size_t(seen)) << "each is seen once";
}

// --------------------------------------------------------------------------------- pages

struct Block {
  explicit Block(const Weights& w) : weight(w.tensor("weight", {3})) {}
  Tensor weight;
};

// Blocks come and go in pages of two; the last page of a run may have one.
TEST(BlocksInPages, HaveTheirOwnWeightsWhileTheyRun) {
  const TemporaryFolder folder;
  std::map<std::string, Tensor> stored;
  for (int i = 0; i < 7; ++i)
    stored["blocks." + std::to_string(i) + ".weight"] = at::full({3}, double(i));
  write_file(folder / "m.safetensors", write_safetensors(stored));
  for (const auto& [begin, count] : {std::pair(0, 7), {1, 5}, {3, 4}, {6, 1}, {2, 0}})
    for (const int prefetch : {0, 1}) {
      const auto pages = std::make_shared<Pages>(std::make_shared<CpuPageDevice>(), at::kCPU,
                                                 PageOptions{.prefetch = prefetch});
      const Weights w(Checkpoint::open(folder.path(), "m"), {},
                      {.paging = {.pages = pages, .level = PageLevel::kBlock, .blocks = 2}});
      const BlockList<Block> list(w / "blocks", BlockRun{.all = 7, .begin = begin, .count = count});
      w.finish();
      pages->finish();
      EXPECT_EQ(list.size(), count);
      for (int pass = 0; pass < 2; ++pass) {
        std::vector<std::int64_t> order;
        list.for_each([&](std::int64_t i, const Block& block) {
          order.push_back(i);
          EXPECT_TRUE(at::equal(block.weight, at::full({3}, double(i)))) << i;
        });
        ASSERT_EQ(order.size(), std::size_t(count));
        for (int i = 0; i < count; ++i) EXPECT_EQ(order[std::size_t(i)], begin + i);
      }
    }
}

// Three blocks of a kind and six of another in pages of two: the second page has one block, which
// takes half as long as a whole page. Of five pages that need the same rate three stay, where the
// shares of 3/5 so far pass a whole number: the first, the second and the fourth, five blocks.
// One more page of two takes turns.
TEST(BlocksInPages, CountOnlyTheBlocksOfTheirOwnKind) {
  constexpr std::int64_t kNumbers = 1024;
  struct LargeBlock {
    explicit LargeBlock(const Weights& w) : weight(w.tensor("weight", {kNumbers})) {}
    Tensor weight;
  };
  const TemporaryFolder folder;
  std::map<std::string, Tensor> stored;
  for (int i = 0; i < 3; ++i)
    stored["doubles." + std::to_string(i) + ".weight"] = at::zeros({kNumbers});
  for (int i = 0; i < 6; ++i)
    stored["singles." + std::to_string(i) + ".weight"] = at::zeros({kNumbers});
  write_file(folder / "m.safetensors", write_safetensors(stored));
  const PageOptions options{.prefetch = 0, .resident = 3, .residency = Residency::kStrided};
  const auto pages = std::make_shared<Pages>(std::make_shared<CpuPageDevice>(), at::kCPU, options);
  const Weights w(Checkpoint::open(folder.path(), "m"), {},
                  {.paging = {.pages = pages, .level = PageLevel::kBlock, .blocks = 2}});
  const auto run = run_of({}, 9);
  const BlockList<LargeBlock> doubles(w / "doubles", run.of_kind(0, 3));
  const BlockList<LargeBlock> singles(w / "singles", run.of_kind(3, 6));
  w.finish();
  pages->finish();
  EXPECT_EQ(pages->slot_bytes(), (5 + 2) * kNumbers * std::int64_t(sizeof(float)));
}

}  // namespace braid::inputs_test
