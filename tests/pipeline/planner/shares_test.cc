// What each rank reads from the files: nothing twice, nothing of another rank's share.
#include <gtest/gtest.h>

#include <mutex>
#include <numeric>

#include "base/error.h"
#include "comm/thread.h"
#include "models/flux/model.h"
#include "models/flux/names.h"
#include "models/flux/sharding.h"
#include "pipeline/families/flux/flux.h"
#include "pipeline/files/found_files.h"
#include "pipeline/loaded/model.h"

namespace braid::shares_test {

const ModelFiles& files() {
  static const auto found =
      find_model({.model = std::filesystem::path(BRAID_SOURCE_DIR) / "models/demo"}).files;
  return found;
}

// Bytes of the checkpoint that each rank reads.
std::vector<std::int64_t> bytes_of_ranks(
    const Degrees& degrees, const std::function<void(const Mesh&, const LoadOptions&)>& load) {
  std::vector<std::int64_t> bytes(std::size_t(degrees.product()));
  run_ranks({.size = degrees.product()}, [&](const Group& world) {
    auto& mine = bytes[std::size_t(world.rank())];
    const auto mesh = make_mesh(world, degrees);
    load(mesh, {.on_bytes = [&](std::int64_t b) { mine += b; }, .tensor_parallel = mesh.tp});
  });
  return bytes;
}

std::vector<std::int64_t> bytes_of_transformer(const Degrees& degrees) {
  return bytes_of_ranks(degrees, [](const Mesh& mesh, const LoadOptions& load) {
    auto checkpoint = files().open("transformer");
    const auto config = read_flux_config(read_json_object(files().config_of("transformer")));
    auto names = flux_names(checkpoint);
    const auto shardings = flux_sharding(config, SharedModulation::kYes);
    const Flux flux(config, Weights(std::move(checkpoint), std::move(names), load, shardings),
                    ops::attention,
                    blocks_of_rank(*make_flux_family({.flux = config}), mesh, at::kCPU, 1));
  });
}

std::int64_t sum(const std::vector<std::int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::int64_t(0));
}

TEST(Shares, StagesReadEveryByteOfTheTransformerOnce) {
  const auto whole = std::int64_t(files().open("transformer").num_bytes());
  for (const int stages : {1, 2, 3, 8}) {
    const auto bytes = bytes_of_transformer({.pp = stages});
    EXPECT_EQ(sum(bytes), whole) << stages << " stages";
    for (const auto mine : bytes) EXPECT_LT(mine, stages == 1 ? whole + 1 : whole * 3 / 4);
  }
}

TEST(Shares, StagesReadTheSharesOfTheirTensorParallelRanks) {
  EXPECT_EQ(sum(bytes_of_transformer({.pp = 3, .tp = 2})), sum(bytes_of_transformer({.tp = 2})));
}

// Counts from tensor names alone: bytes split over `size` ranks, and bytes that all of them read.
std::int64_t want_of_text(const std::vector<std::string>& shared, const Checkpoint& checkpoint,
                          int size) {
  std::int64_t bytes = 0;
  for (const auto& [name, stored] : checkpoint.tensors()) {
    const auto is_part = [&, &name = name](const std::string& part) {
      return name.find(part) != std::string::npos;
    };
    const bool is_shared = std::any_of(shared.begin(), shared.end(), is_part);
    bytes += std::int64_t(stored.entry.size) / (is_shared ? size : 1);
  }
  return bytes;
}

TEST(Shares, TensorParallelRanksReadTheirPartsOfTheTextEncoders) {
  const auto clip = files().open("text_encoder");
  const auto t5 = files().open("text_encoder_2");
  for (const int size : {1, 2, 4}) {
    const auto want =
        want_of_text({"q_proj.", "k_proj.", "v_proj.", "fc1.", "out_proj.weight", "fc2.weight"},
                     clip, size) +
        want_of_text({"SelfAttention.", "DenseReluDense."}, t5, size);
    const auto bytes = bytes_of_ranks({.tp = size}, [](const Mesh&, const LoadOptions& load) {
      const auto weights = [&](const Part& part) {
        auto checkpoint = files().open(part.folder);
        auto names = part.names(checkpoint);
        return Weights(std::move(checkpoint), std::move(names), load,
                       part.sharding(SharedModulation::kYes));
      };
      (void)open_family(files())->load_text(files().folder, at::kCPU, weights, {});
    });
    EXPECT_EQ(bytes, std::vector<std::int64_t>(std::size_t(size), want)) << size << " ranks";
  }
}

TEST(Shares, ATensorThatNoStageKnowsIsAnErrorOnEach) {
  EXPECT_THROW(
      run_ranks({.size = 2},
                [](const Group& world) {
                  const auto mesh = make_mesh(world, {.pp = 2});
                  auto checkpoint = files().open("transformer");
                  auto config =
                      read_flux_config(read_json_object(files().config_of("transformer")));
                  auto names = flux_names(checkpoint);
                  --config.num_single;  // now the last block is unknown
                  const auto run =
                      blocks_of_rank(*make_flux_family({.flux = config}), mesh, at::kCPU, 1);
                  if (world.rank() == 1) return;
                  const Flux flux(config, Weights(checkpoint, names, {}), ops::attention, run);
                }),
      InputError);
}

}  // namespace braid::shares_test
