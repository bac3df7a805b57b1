// Pages of weights with adapters: a page on disk serves only the share and the adapters that it was
// made of, even where the stored weights of shares are equal.
#include "adapted_model.h"
#include "comm/thread.h"
#include "weights/paging/cpu_device.h"

namespace braid::adapted_pages_test {

constexpr std::int64_t kSize = 16;

// One square layer, whose rows are alike and whose columns are, too.
class AdaptedPages : public testing::Test {
 protected:
  AdaptedPages() {
    write_file(model(), write_safetensors({{"a.weight", at::ones({kSize, kSize})}}));
  }
  fs::path model() const { return folder_ / "m.safetensors"; }

  // A LoRA, with DoRA's magnitudes if `magnitude` is defined.
  std::vector<AppliedAdapter> adapter(const std::string& name, const Tensor& magnitude) const {
    Tensors tensors = {{"a.lora_A.weight", at::randn({2, kSize})},
                       {"a.lora_B.weight", at::randn({kSize, 2})}};
    if (magnitude.defined()) tensors["a.dora_scale"] = magnitude;
    const auto path = folder_ / (name + ".safetensors");
    write_file(path, write_safetensors(tensors));
    return open_adapters({{.file = path}});
  }

  // The layer, copied out of its page if there is a folder for pages.
  Matrix load(const std::vector<AppliedAdapter>& adapters, LoadOptions options,
              const ShardingTable& shardings, const fs::path& pages_folder = {}) const {
    if (!pages_folder.empty()) {
      const auto folder = std::make_shared<const PageFolder>(pages_folder);
      options.paging = {std::make_shared<Pages>(std::make_shared<CpuPageDevice>(), at::kCPU,
                                                PageOptions{.resident = -1, .folder = folder}),
                        PageLevel::kBlock};
    }
    const auto unmerged = std::make_shared<UnmergedAdapters>(
        AdaptedPart{.names = {.prefixes = {""}, .tables = {{}}}, .shardings = shardings}, at::kCPU);
    const Weights w(adapted_tensors(stored_tensors(Checkpoint::open_file(model()), {}), adapters,
                                    AdapterMode::kAuto, unmerged),
                    options, shardings);
    const auto made = (w / "a").paged(PageLevel::kBlock).matrix("weight", {kSize, kSize});
    if (options.paging.pages) options.paging.pages->finish();
    return map_tensors(made, [](const Tensor& tensor) { return tensor.clone(); });
  }

  TemporaryFolder folder_, pages_;
};

TEST_F(AdaptedPages, AreOthersInEveryShare) {
  const std::vector<std::vector<AppliedAdapter>> adapters = {
      adapter("lora", {}), adapter("outputs", at::rand({kSize, 1}) + 0.5),
      adapter("inputs", at::rand({1, kSize}) + 0.5)};
  const std::vector<ShardingTable> shardings = {
      {{"a", column_parallel()}}, {{"a", row_parallel()}}, {{"a", column_parallel({4, 12})}}};
  run_ranks({.size = 2}, [&](const Group& group) {
    for (const auto form : {Quantize::kNone, Quantize::kInt8})
      for (const auto& adapter : adapters)
        for (const auto& sharding : shardings) {
          const LoadOptions options{.tensor_parallel = group, .quantize = form};
          const auto want = load(adapter, options, sharding);
          EXPECT_FALSE(at::equal(want.values_NC, load({}, options, sharding).values_NC));
          for (int i = 0; i < 2; ++i) {  // made, then found
            const auto got = load(adapter, options, sharding, pages_.path());
            EXPECT_TRUE(at::equal(got.values_NC, want.values_NC)) << int(form);
            if (want.scales_N1.defined()) {
              EXPECT_TRUE(at::equal(got.scales_N1, want.scales_N1));
            }
          }
          group.barrier();
        }
  });
  const auto pages = std::distance(fs::directory_iterator(pages_.path()), fs::directory_iterator());
  EXPECT_EQ(pages, 2 * 2 * std::ptrdiff_t(adapters.size() * shardings.size()));
}

// Stored codes stay as they are, with the adapter beside them; their columns are cut from whole
// rows.
TEST_F(AdaptedPages, OfStoredCodesAreOthersInEveryShare) {
  const auto codes = at::randint(-128, 128, {kSize, kSize}, at::kChar);
  write_file(model(),
             write_safetensors({{"a.weight", codes}, {"a.weight_scale", at::ones({kSize, 1})}}));
  const auto lora = adapter("lora", {});
  run_ranks({.size = 2}, [&](const Group& group) {
    const LoadOptions options{.tensor_parallel = group, .quantize = Quantize::kInt8};
    for (const auto& [sharding, dim] :
         {std::pair{ShardingTable{{"a", column_parallel()}}, 0}, {{{"a", row_parallel()}}, 1}})
      for (int i = 0; i < 2; ++i) {
        const auto got = load(lora, options, sharding, pages_.path());
        EXPECT_TRUE(at::equal(got.values_NC, codes.narrow(dim, 8 * group.rank(), 8))) << dim;
        group.barrier();
      }
  });
}

}  // namespace braid::adapted_pages_test
