// Pages on disk are named by what they are made of: the second load reuses those of the first, and
// never another's.
#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "comm/thread.h"
#include "files.h"
#include "weights/files/safetensors_writer.h"
#include "weights/paging/cpu_device.h"
#include "weights/weights.h"

namespace braid::disk_pages_test {

using testing::HasSubstr;
using namespace testing_files;

// Counts how often this thread rounds numbers to codes, while it lives.
class CountQuantized {
 public:
  CountQuantized() {
    count_ = 0;
    handle_ = at::addThreadLocalCallback(at::RecordFunctionCallback(
        [](const at::RecordFunction& f) -> std::unique_ptr<at::ObserverContext> {
          count_ += std::string(f.name()) == "aten::round_";
          return nullptr;
        }));
  }
  ~CountQuantized() { at::removeCallback(handle_); }
  int count() const { return count_; }

 private:
  static inline thread_local int count_;
  at::CallbackHandle handle_;
};

class DiskPages : public testing::Test {
 protected:
  struct Loaded {
    std::shared_ptr<Pages> pages;
    std::vector<Matrix> layers;
    std::vector<Tensor> biases;
  };

  static constexpr std::int64_t kRows = 24, kColumns = 160;
  static constexpr int kLayers = 3;

  fs::path file() const { return model_ / "m.safetensors"; }
  void write_model() const {
    std::map<std::string, Tensor> tensors;
    for (int i = 0; i < kLayers; ++i) {
      tensors[std::to_string(i) + ".weight"] = at::randn({kRows, kColumns}, at::kFloat);
      tensors[std::to_string(i) + ".bias"] = at::randn({kRows}, at::kFloat);
    }
    write_file(file(), write_safetensors(tensors));
  }

  static LoadOptions int8() { return {.dtype = at::kBFloat16, .quantize = Quantize::kInt8}; }

  // One page per layer.
  Loaded load(LoadOptions options, const ShardingTable& plan = {},
              const fs::path& from = {}) const {
    const auto folder = std::make_shared<const PageFolder>(pages_.path());
    auto pages = std::make_shared<Pages>(std::make_shared<CpuPageDevice>(), at::kCPU,
                                         PageOptions{.folder = folder});
    options.paging = {.pages = pages, .level = PageLevel::kBlock};
    const Weights w(Checkpoint::open_file(from.empty() ? file() : from), {}, options, plan);
    Loaded loaded{.pages = pages, .layers = {}, .biases = {}};
    for (int i = 0; i < kLayers; ++i) {
      const auto layer = (w / i).paged(PageLevel::kBlock);
      loaded.layers.push_back(layer.matrix("weight", {kRows, kColumns}));
      loaded.biases.push_back(layer.tensor("bias", {kRows}));
    }
    pages->finish();
    return loaded;
  }

  static void expect_same(const Loaded& paged, const Weights& w) {
    for (int i = 0; i < kLayers; ++i) {
      const Page page(paged.pages, i);
      const auto in_use = page.use();
      const auto want = (w / i).matrix("weight", {kRows, kColumns});
      const auto& got = paged.layers[std::size_t(i)];
      EXPECT_EQ(got.form, want.form);
      EXPECT_TRUE(at::equal(got.values_NC, want.values_NC)) << i;
      ASSERT_EQ(got.scales_N1.defined(), want.scales_N1.defined());
      EXPECT_TRUE(!want.scales_N1.defined() || at::equal(got.scales_N1, want.scales_N1)) << i;
      EXPECT_TRUE(at::equal(paged.biases[std::size_t(i)], (w / i).tensor("bias", {kRows})));
    }
  }
  Weights resident(LoadOptions options, const ShardingTable& plan = {}) const {
    return {Checkpoint::open_file(file()), {}, std::move(options), plan};
  }

  std::map<fs::path, fs::file_time_type> files() const {
    std::map<fs::path, fs::file_time_type> found;
    for (const auto& entry : fs::directory_iterator(pages_.path()))
      found[entry.path()] = entry.last_write_time();
    return found;
  }
  // Flips one bit of the checkpoint's last tensor; nothing else about the file changes.
  void flip_a_bit() const {
    const auto time = fs::last_write_time(file());
    std::fstream stream(file(), std::ios::in | std::ios::out | std::ios::binary);
    const auto at = std::streamoff(fs::file_size(file()) - 2);
    stream.seekg(at);
    const char byte = char(stream.get() ^ 1);
    stream.seekp(at);
    stream.put(byte);
    stream.close();
    fs::last_write_time(file(), time);
  }

  DiskPages() { write_model(); }
  TemporaryFolder model_, pages_;
};

TEST_F(DiskPages, ServeTheNextLoadWhichNeitherQuantizesNorWrites) {
  {
    const CountQuantized count;
    expect_same(load(int8()), resident(int8()));
    EXPECT_GE(count.count(), kLayers);
  }
  const auto before = files();
  EXPECT_EQ(before.size(), std::size_t(kLayers));
  const CountQuantized count;
  const auto again = load(int8());
  EXPECT_EQ(count.count(), 1 * kLayers) << "what names the quantizer itself, and no layer";
  EXPECT_EQ(files(), before);
  expect_same(again, resident(int8()));
}

// The run that finds one damaged page ends; the next one mends all.
TEST_F(DiskPages, AreAllMendedByTheLoadAfterAFailure) {
  load(int8());
  for (const auto& [path, time] : files()) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(5000);
    file.write("damage", 6);
  }
  const auto damaged = load(int8());
  const Page first(damaged.pages, 0);
  EXPECT_THROW(const auto in_use = first.use(), Error);
  expect_same(load(int8()), resident(int8()));
}

// A change invisible in the file's time and size.
TEST_F(DiskPages, SeeAChangedBitOfTheCheckpoint) {
  load(int8());
  flip_a_bit();
  for (const auto& options : {int8(), LoadOptions{.dtype = at::kFloat}})
    expect_same(load(options), resident(options));
  EXPECT_EQ(files().size(), std::size_t(kLayers + 1 + kLayers)) << "the layers that did not change";
}

TEST_F(DiskPages, AreSharedByEqualWeightsUnderAnyName) {
  load(int8());
  const auto before = files();
  fs::copy_file(file(), model_ / "copy.safetensors");
  load(int8(), {}, model_ / "copy.safetensors");
  EXPECT_EQ(files(), before);
}

TEST_F(DiskPages, AreOthersInEveryForm) {
  std::size_t made = 0;
  for (const auto dtype : {at::kFloat, at::kBFloat16, at::kHalf})
    for (const auto form : {Quantize::kNone, Quantize::kInt8, Quantize::kInt8V1,
                            Quantize::kInt8Dynamic, Quantize::kFloat8}) {
      const LoadOptions options{.dtype = dtype, .quantize = form};
      expect_same(load(options), resident(options));
      EXPECT_EQ(files().size(), made += kLayers) << int(form) << " of " << dtype;
    }
}

TEST_F(DiskPages, AreOthersInEveryShare) {
  for (const auto& plan :
       {ShardingTable{{"*", column_parallel()}}, ShardingTable{{"*", column_parallel({8, 16})}},
        ShardingTable{{"*", row_parallel()}}, ShardingTable{{"*", row_parallel({64, 96})}}})
    run_ranks({.size = 2}, [&](const Group& group) {
      auto options = int8();
      options.tensor_parallel = group;
      expect_same(load(options, plan), resident(options, plan));
      // and once more, from disk
      expect_same(load(options, plan), resident(options, plan));
    });
  EXPECT_EQ(files().size(), std::size_t(4 * 2 * kLayers));
}

TEST_F(DiskPages, AreOthersOfStoredCodesWithOtherScales) {
  const auto codes = at::randint(-128, 128, {kRows, kColumns}, at::kChar);
  const auto write = [&](double scale) {
    std::map<std::string, Tensor> tensors;
    for (int i = 0; i < kLayers; ++i) {
      tensors[std::to_string(i) + ".weight"] = codes;
      tensors[std::to_string(i) + ".weight_scale"] = at::full({kRows, 1}, scale, at::kFloat);
      tensors[std::to_string(i) + ".bias"] = at::zeros({kRows}, at::kFloat);
    }
    write_file(file(), write_safetensors(tensors));
  };
  for (const double scale : {0.5, 0.25}) {
    write(scale);
    expect_same(load({}), resident({}));
  }
  EXPECT_EQ(files().size(), 2u) << "layers alike share a page";
}

// ComfyUI's marks say which neighbours were rotated together; the codes do not.
TEST_F(DiskPages, AreOthersOfCodesRotatedOtherwise) {
  std::map<std::string, Tensor> tensors;
  std::size_t made = 0;
  for (const char* const turned : {"", R"(,"convrot":true,"convrot_groupsize":4)",
                                   R"(,"convrot":true,"convrot_groupsize":16)"}) {
    const auto mark = text_of(R"({"format":"int8_tensorwise")", turned, "}");
    const std::vector<std::uint8_t> bytes(mark.begin(), mark.end());
    for (const std::string layer : {"0", "1", "2"}) {
      tensors.emplace(layer + ".weight", at::randint(-128, 128, {kRows, kColumns}, at::kChar));
      tensors.emplace(layer + ".weight_scale", at::full({}, 0.5));
      tensors.emplace(layer + ".bias", at::zeros({kRows}));
      tensors[layer + ".comfy_quant"] = at::tensor(bytes, at::kByte);
    }
    write_file(file(), write_safetensors(tensors));
    expect_same(load({}), resident({}));
    EXPECT_EQ(files().size(), made += kLayers) << mark;
  }
}

TEST_F(DiskPages, OfSyntheticWeightsServeTheNextLoadToo) {
  const auto one = [&](Quantize form) {
    const auto folder = std::make_shared<const PageFolder>(pages_.path());
    auto pages = std::make_shared<Pages>(std::make_shared<CpuPageDevice>(), at::kCPU,
                                         PageOptions{.resident = -1, .folder = folder});
    const auto w = Weights::synthetic({.quantize = form, .paging = {pages, PageLevel::kBlock}});
    const auto layer = (w / "a").paged(PageLevel::kBlock);
    const auto matrix = layer.matrix("weight", {kRows, kColumns});
    pages->finish();
    return map_tensors(matrix, [](const Tensor& tensor) { return tensor.clone(); });
  };
  for (const auto form : {Quantize::kNone, Quantize::kInt8}) {
    const auto first = one(form);
    const auto before = files();
    EXPECT_TRUE(at::equal(first.values_NC, one(form).values_NC));
    EXPECT_EQ(files(), before);
  }
  EXPECT_EQ(files().size(), 2u);
}

// The bytes read from files, for a progress that reaches its total either way.
TEST_F(DiskPages, TellOfTheSameBytesWhetherMadeOrFound) {
  for (const auto form : {Quantize::kNone, Quantize::kInt8}) {
    std::vector<std::int64_t> told;
    for (int i = 0; i < 2; ++i) {
      auto options = int8();
      options.quantize = form;
      std::int64_t bytes = 0;
      options.on_bytes = [&](std::int64_t more) { bytes += more; };
      load(options);
      told.push_back(bytes);
    }
    EXPECT_EQ(told[0], kLayers * (kRows * kColumns + kRows) * 4);
    EXPECT_EQ(told[1], told[0]);
  }
}

TEST_F(DiskPages, OfWeightsThatChangeMeanwhileAreNotKept) {
  const auto folder = std::make_shared<const PageFolder>(pages_.path());
  Pages pages(std::make_shared<CpuPageDevice>(), at::kCPU, {.folder = folder});
  pages.add_group("blocks.0");
  int asked = 0;
  pages.add({.tensors = {{at::kFloat, {2}}},
             .identity = [&] { return std::to_string(++asked); },
             .make = [] { return std::vector<Tensor>{at::zeros({2}, at::kFloat)}; }});
  EXPECT_THAT(message_of<std::exception>([&] { pages.finish(); }),
              HasSubstr("the weights of blocks.0 have changed while they were read"));
  EXPECT_TRUE(files().empty());
}

// Linux counts the bytes read by system calls; nothing else reads here.
std::int64_t bytes_read_by_process() {
  std::ifstream account("/proc/self/io");
  std::string key;
  std::int64_t bytes = 0;
  account >> key >> bytes;
  return key == "rchar:" ? bytes : -1;
}

TEST_F(DiskPages, AreReadOnceAStep) {
  const auto folder = std::make_shared<const PageFolder>(pages_.path(), DiskReads::kDirect);
  // No prefetch: when a step ends, everything requested has been read.
  Pages pages(std::make_shared<CpuPageDevice>(), at::kCPU, {.prefetch = 0, .folder = folder});
  constexpr int kGroups = 5, kSteps = 4;
  for (int i = 0; i < kGroups; ++i) {
    pages.add_group(std::to_string(i));
    pages.add(at::full({1 + i, 3000}, i, at::kFloat));
  }
  pages.finish();
  const auto step = [&] {
    for (int i = 0; i < kGroups; ++i) {
      pages.enter(i);
      pages.leave(i);
    }
  };
  step();
  const auto before = bytes_read_by_process();
  if (before < 0) GTEST_SKIP() << "this system does not count";
  for (int i = 0; i < kSteps; ++i) step();
  const auto own = 1024;  // at most; for reading /proc/self/io itself
  EXPECT_NEAR(double(bytes_read_by_process() - before), double(kSteps * pages.page_bytes()), own);
}

}  // namespace braid::disk_pages_test
