// Descriptions by which pages on disk are found again: whatever changes the numbers changes them,
// and nothing else does. Two pages under one description are wrong pictures that nobody explains.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <set>

#include "files.h"
#include "weights/files/safetensors_writer.h"
#include "weights/sources/identity.h"
#include "weights/sources/synthetic.h"
#include "weights/weights.h"

namespace braid::identities_test {

using namespace testing_files;

// Expects all descriptions to differ from each other.
void expect_distinct(const std::vector<std::string>& all) {
  const std::set<std::string> distinct(all.begin(), all.end());
  EXPECT_EQ(distinct.size(), all.size()) << testing::PrintToString(all);
}

class Identities : public testing::Test {
 protected:
  // One stored tensor; the file's name counts up.
  StoredTensor stored(const Tensor& tensor, const std::string& name = "a") {
    const auto path = folder_ / (std::to_string(++files_) + ".safetensors");
    write_file(path, write_safetensors({{name, tensor}, {"before." + name, at::ones({files_})}}));
    return *Checkpoint::open_file(path).find(name);
  }
  static std::string identity(const StoredTensor& stored) {
    return identity_of(std::vector<StoredTensor>{stored});
  }
  static StoredTensor with(StoredTensor stored, const StoredTensor& scales) {
    stored.scales = std::make_shared<const StoredTensor>(scales);
    return stored;
  }

  TemporaryFolder folder_;
  int files_ = 0;
};

TEST_F(Identities, DoNotDependOnNamesAndPlaces) {
  const auto x = at::randn({6, 4});
  EXPECT_EQ(identity(stored(x)), identity(stored(x, "other.weight")));
  EXPECT_EQ(identity(stored(at::full({}, 2.f))), identity(stored(at::full({}, 2.f))));
}

// The same bytes as other numbers, or as other rows.
TEST_F(Identities, DependOnTheTypeAndShapeOfTheSameBytes) {
  const auto bytes = at::randint(1, 120, {8, 8}, at::kByte);
  expect_distinct(
      {identity(stored(bytes.view(at::kBFloat16))), identity(stored(bytes.view(at::kHalf))),
       identity(stored(bytes.view(at::kFloat))), identity(stored(bytes.view(at::kFloat8_e4m3fn))),
       identity(stored(bytes.view(at::kFloat8_e5m2))), identity(stored(bytes)),
       identity(stored(bytes.view(at::kChar))),
       identity(stored(bytes.view({4, 16}).view(at::kBFloat16))),
       identity(stored(bytes.view({16, 4}).view(at::kBFloat16)))});
}

TEST_F(Identities, DependOnEveryByte) {
  const auto x = at::randint(0, 256, {9, 7}, at::kByte);
  std::vector<std::string> all = {identity(stored(x))};
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    auto changed = x.clone();
    changed.flatten()[i].bitwise_xor_(1);
    all.push_back(identity(stored(changed)));
  }
  expect_distinct(all);
}

TEST_F(Identities, DependOnTheRowsThatAreTaken) {
  // all rows alike
  const auto one = std::make_shared<const StoredTensor>(stored(at::zeros({8, 4})));
  const auto rows = [&](std::vector<Share> shares) {
    RowRanges ranges;
    for (const auto& share : shares) ranges.push_back({one, share});
    return identity_of(ranges);
  };
  EXPECT_EQ(rows({{0, 3}}), rows({{5, 3}})) << "equal bytes make equal weights";
  expect_distinct({rows({{0, 8}}), rows({{0, 3}}), rows({{0, 3}, {3, 5}}), rows({{0, 4}, {4, 4}})});
}

TEST_F(Identities, DependOnScalesRotationsAndTiles) {
  const auto codes = stored(at::randint(0, 100, {128, 16}, at::kByte));
  auto rotated = codes, further = codes, tiled = codes;
  rotated.rotated_together = 4;
  further.rotated_together = 16;
  tiled.arrangement = Arrangement::kTiles;
  expect_distinct({identity(codes), identity(rotated), identity(further), identity(tiled),
                   identity(with(codes, stored(at::full({}, 0.5f)))),
                   identity(with(codes, stored(at::full({}, 0.25f)))),
                   identity(with(codes, stored(at::full({128, 1}, 0.5f))))});
}

TEST_F(Identities, DependOnColumnsFormsAndDtypes) {
  using Shares = std::vector<Share>;
  expect_distinct({identity_of(Shares{}), identity_of(Shares{{0, 4}}), identity_of(Shares{{4, 4}}),
                   identity_of(Shares{{0, 2}, {2, 2}})});
  std::vector<std::string> all;
  for (const auto form :
       {Quantize::kInt8, Quantize::kInt8V1, Quantize::kInt8Dynamic, Quantize::kFloat8})
    for (const auto dtype : {at::kFloat, at::kBFloat16, at::kHalf})
      all.push_back(identity_of(form, dtype));
  expect_distinct(all);
}

// Larger than a thread reads at once: the order of its parts counts, and a byte of the last one.
TEST(Digests, AreOfAllPartsInTheirOrder) {
  constexpr std::size_t kPart = 4 << 20;
  std::string bytes(2 * kPart + 100, 'a');
  const auto digest_of = [](const std::string& text) {
    return digest(std::as_bytes(std::span(text)));
  };
  std::vector<std::string> all = {digest_of(bytes), digest_of(bytes.substr(1))};
  for (const auto place : {std::size_t(0), kPart - 1, kPart, 2 * kPart, bytes.size() - 1}) {
    bytes[place] = 'b';
    all.push_back(digest_of(bytes));
    bytes[place] = 'a';
  }
  expect_distinct(all);
}

// --------------------------------------------------------------------------- synthetic weights

TEST(SyntheticWeights, AreDescribedByTheirPlaceAndSpread) {
  const SyntheticValues values, again, others(1);
  const auto of = [](const SyntheticValues& some, const char* path, at::IntArrayRef shape) {
    return some.identity_of(path, shape);
  };
  EXPECT_EQ(of(values, "a.weight", {8, 4}), of(again, "a.weight", {8, 4}));
  expect_distinct({of(values, "a.weight", {8, 4}), of(values, "b.weight", {8, 4}),
                   of(values, "a.weight", {4, 8}), of(values, "a.weight", {8}),
                   of(others, "a.weight", {8, 4})});
}

// A variance of 0 or below would make NaN of what it norms; a scale near 0 removes it.
TEST(SyntheticWeights, OfScalesAndVariancesAreNearOne) {
  const SyntheticValues values;
  for (const std::string path :
       {"block.scale", "bn.running_var", "norm.weight", "a_norm_b.gamma"}) {
    const auto x = values.share(path, {2000}, {.rows = {{0, 2000}}, .columns = {}},
                                at::TensorOptions(at::kFloat));
    EXPECT_GT(x.min().item<float>(), 0.8) << path;
    EXPECT_LT(x.max().item<float>(), 1.2) << path;
  }
}

// A rank's codes are those of one device, whichever rows and columns it holds.
TEST(SyntheticWeights, AreTheSameCodesInEveryShare) {
  const auto values = std::make_shared<const SyntheticValues>();
  const auto drawn = [&](const Shard& shard, Quantize form) {
    return make({.from = DrawnRows{values, "a.weight"},
                 .shape = {40, 24},
                 .shard = shard,
                 .dtype = at::kBFloat16,
                 .form = form},
                at::kCPU)
        .matrix;
  };
  for (const auto form :
       {Quantize::kInt8, Quantize::kInt8V1, Quantize::kInt8Dynamic, Quantize::kFloat8}) {
    const auto whole = drawn({.rows = {{0, 40}}, .columns = {}}, form);
    const auto some = drawn({.rows = {{3, 5}, {30, 10}}, .columns = {{2, 4}, {20, 4}}}, form);
    const auto rows_of = [](const Tensor& x) {
      return at::cat({x.narrow(0, 3, 5), x.narrow(0, 30, 10)});
    };
    const auto rows = rows_of(whole.values_NC);
    EXPECT_TRUE(
        at::equal(some.values_NC, at::cat({rows.narrow(1, 2, 4), rows.narrow(1, 20, 4)}, 1)))
        << int(form);
    EXPECT_TRUE(at::equal(some.scales_N1, rows_of(whole.scales_N1))) << int(form);
  }
}

}  // namespace braid::identities_test
