// Loads in a user's hands: tensors of other shapes than they should have, unknown ones, parts of a
// model that are elsewhere, and how much was read.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/thread.h"
#include "files.h"
#include "weights/files/safetensors_writer.h"
#include "weights/paging/cpu_device.h"
#include "weights/weights.h"

namespace braid::load_edges_test {

using testing::HasSubstr;
using namespace testing_files;
using Tensors = std::map<std::string, Tensor>;

Checkpoint stored(const TemporaryFolder& folder, const Tensors& tensors) {
  write_file(folder / "m.safetensors", write_safetensors(tensors));
  return Checkpoint::open(folder.path(), "m");
}

TEST(StoredConvolutions, OfSinglePixelsAreMatricesAndOthersAreNot) {
  const TemporaryFolder folder;
  const auto kernel = at::randn({4, 3, 1, 1});
  const auto ask = [&](const Tensor& tensor, at::IntArrayRef shape) {
    const Weights w(stored(folder, {{"a.weight", tensor}}), {}, {});
    return message_of([&] {
      const auto got = (w / "a").matrix("weight", shape).values_NC;
      EXPECT_TRUE(at::equal(got, tensor.flatten(1)));
    });
  };
  EXPECT_EQ(ask(kernel, {4, 3}), "");
  EXPECT_EQ(ask(at::randn({4, 3, 1}), {4, 3}), "");
  for (const auto& other : {at::randn({4, 3, 1, 2}), at::randn({4, 3, 2, 1}), at::randn({3, 4})})
    EXPECT_THAT(ask(other, {4, 3}), HasSubstr("should have the shape [4, 3], it has"))
        << other.dim();
  EXPECT_THAT(ask(kernel, {4, 2}), HasSubstr("should have the shape [4, 2]"));
}

// Writers of GGUF drop extents of 1 at the end of their reversed shapes, others add some.
TEST(StoredShapes, MayDifferByExtentsOfOne) {
  const TemporaryFolder folder;
  const auto loaded = [&](const Tensor& tensor, at::IntArrayRef shape) {
    const Weights w(stored(folder, {{"a.token", tensor}}), {}, {});
    return (w / "a").tensor("token", shape);
  };
  using Shape = std::vector<std::int64_t>;
  const std::pair<Shape, Shape> pairs[] = {
      {{6}, {1, 6}},       {{1, 6}, {6}},          {{6, 1}, {6}}, {{6}, {6, 1, 1, 1}},
      {{2, 3}, {2, 3, 1}}, {{2, 1, 3}, {1, 2, 3}}, {{}, {1}},     {{1}, {1, 1}}};
  for (const auto& [has, wanted] : pairs) {
    const auto numbers = at::randn(has);
    EXPECT_TRUE(at::equal(loaded(numbers, wanted), numbers.view(wanted)));
  }
  EXPECT_THROW(loaded(at::randn({6}), {2, 3}), InputError);
  EXPECT_THROW(loaded(at::randn({3, 2}), {2, 3}), InputError);
  EXPECT_THROW(loaded(at::randn({7}), {1, 6}), InputError);
}

// Parts may be joined, and ranks may share them.
TEST(StoredShapes, MayDifferByExtentsOfOneInEveryPart) {
  const TemporaryFolder folder;
  const auto p = at::randn({2, 6, 1, 1}), q = at::randn({4, 6});
  const Tensors tensors = {
      {"p.weight", p}, {"q.weight", q}, {"p.bias", at::zeros({2, 1})}, {"q.bias", at::ones({4})}};
  const auto want = at::cat({p.flatten(1), q});
  run_ranks({.size = 2}, [&](const Group& ranks) {
    const Weights w(stored(folder, tensors), {.spellings = {{"a", {"p", "q"}}}},
                    {.tensor_parallel = ranks}, {{"a", column_parallel()}});
    const auto a = (w / "a").matrix("weight", {6, 6}).values_NC;
    EXPECT_TRUE(at::equal(a, take_share(want, 0, ranks)));
    EXPECT_EQ((w / "a").tensor("bias", {6}).sum().item<float>(), ranks.rank() == 0 ? 1 : 3);
  });
  const auto codes = at::ones({4, 3}, at::kChar);
  const Weights w(stored(folder, {{"a.weight", codes}, {"a.weight_scale", at::ones({4})}}), {}, {});
  EXPECT_EQ((w / "a").matrix("weight", {4, 3}).scales_N1.sizes(), at::IntArrayRef({4, 1}));
}

TEST(PartsOfOtherWidths, AreNamed) {
  const TemporaryFolder folder;
  const Weights w(stored(folder, {{"p.weight", at::ones({2, 5})}, {"q.weight", at::ones({2, 4})}}),
                  {.spellings = {{"a", {"p", "q"}}}}, {});
  EXPECT_THAT(message_of([&] {
                (void)(w / "a").matrix("weight", {4, 5});
              }),
              HasSubstr("'q.weight' should have the shape [4, 5] together with its neighbours, it "
                        "has [2, 4]"));
}

TEST(ScalesOfCodes, AreFloatingPointAndOnePerRow) {
  const TemporaryFolder folder;
  const auto codes = at::ones({4, 3}, at::kChar);
  const auto refusal = [&](const Tensor& scales) {
    const Weights w(stored(folder, {{"a.weight", codes}, {"a.weight_scale", scales}}), {}, {});
    return message_of([&] { (void)(w / "a").matrix("weight", {4, 3}); });
  };
  EXPECT_EQ(refusal(at::ones({4, 1})), "");
  EXPECT_THAT(refusal(at::ones({4, 1}, at::kInt)), HasSubstr("should hold floating-point numbers"));
  EXPECT_THAT(refusal(at::ones({3, 1})),
              HasSubstr("'a.weight_scale' should have the shape [4, 1]"));
  EXPECT_THAT(refusal(at::ones({2, 2})),
              HasSubstr("'a.weight_scale' should have the shape [4, 1]"));
}

TEST(ScalesOfCodes, AreThere) {
  const TemporaryFolder folder;
  const auto refusal = [&](const Tensors& tensors, at::IntArrayRef shape) {
    const Weights w(stored(folder, tensors), {.spellings = {{"a", {"p", "q"}}, {"b", {"p"}}}}, {});
    return message_of([&] { (void)(w / (shape[0] == 8 ? "a" : "b")).matrix("weight", shape); });
  };
  const auto codes = at::ones({4, 3}, at::kChar), numbers = at::ones({4, 3});
  const auto says = HasSubstr(
      "tensor 'p.weight' is stored as I8 codes without a scale per row, "
      "'p.weight_scale', which Braid cannot read: take the model's own");
  EXPECT_THAT(refusal({{"p.weight", codes}}, {4, 3}), says);
  EXPECT_THAT(refusal({{"p.weight", codes}, {"p.scale_weight", at::ones({4})}}, {4, 3}), says);
  EXPECT_THAT(refusal({{"p.weight", codes}, {"q.weight", numbers}}, {8, 3}), says);
  EXPECT_THAT(refusal({{"p.weight", at::ones({4, 3}, at::kInt)}}, {4, 3}),
              HasSubstr("its dtype is I32: Braid cannot read codes of that dtype, take the model"));
}

// One tensor's scales must not be rounded to the dtype of another's.
TEST(ScalesOfCodes, MayBeOfUnlikeDtypesWhereTheyAreJoined) {
  const TemporaryFolder folder;
  const auto codes = at::ones({2, 3}, at::kChar), scales = at::rand({2, 1});
  for (const auto dtype : {at::kBFloat16, at::kHalf}) {
    const auto narrow = scales.to(dtype);
    const Weights w(stored(folder, {{"p.weight", codes},
                                    {"p.weight_scale", narrow},
                                    {"q.weight", codes},
                                    {"q.weight_scale", scales}}),
                    {.spellings = {{"a", {"p", "q"}}}}, {.dtype = at::kBFloat16});
    const auto got = (w / "a").matrix("weight", {4, 3});
    EXPECT_EQ(got.form, Quantize::kInt8);
    EXPECT_TRUE(at::equal(got.scales_N1, at::cat({narrow.to(at::kFloat), scales})));
  }
}

TEST(UnknownTensors, ThatScaleNumbersAreNamedWithThem) {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& name, const Tensor& weight) {
    const Weights w(stored(folder, {{"a.weight", weight}, {name, at::ones({})}}), {}, {});
    return message_of([&] {
      (void)(w / "a").matrix("weight", {4, 32});
      w.finish();
    });
  };
  const auto numbers = at::ones({4, 32}, at::kBFloat16);
  for (const auto* const name :
       {"a.weight_scale", "a.scale_weight", "a.weight_scale_inv", "a.comfy_quant"})
    EXPECT_THAT(refusal(name, numbers),
                testing::EndsWith(text_of("tensor '", name, "' should be the scale of codes in ",
                                          "'a.weight', which holds BF16")));
  EXPECT_EQ(refusal("a.weight_scale", numbers.to(at::kFloat8_e4m3fn)), "");
  EXPECT_THAT(refusal("b.weight_scale", numbers), testing::EndsWith("have: 'b.weight_scale'"));
}

// Three of four unknown tensors are named; none is left out silently.
TEST(UnknownTensors, AreCountedAndTheFirstThreeNamed) {
  const TemporaryFolder folder;
  const auto refusal = [&](int count) {
    Tensors tensors;
    for (int i = 0; i < count; ++i) tensors[std::string(1, char('a' + i))] = at::ones({1});
    return message_of([&] { Weights(stored(folder, tensors), {}, {}).finish(); });
  };
  EXPECT_EQ(refusal(0), "");
  EXPECT_THAT(refusal(1), testing::EndsWith("holds 1 tensor that the model does not have: 'a'"));
  EXPECT_THAT(refusal(3),
              testing::EndsWith("3 tensors that the model does not have: 'a', 'b', 'c'"));
  EXPECT_THAT(refusal(4), testing::EndsWith("have: 'a', 'b', 'c', ..."));
}

// ------------------------------------------------------------------------- scopes and pages

std::shared_ptr<Pages> some_pages() {
  return std::make_shared<Pages>(std::make_shared<CpuPageDevice>(), at::kCPU, PageOptions());
}

// Weights of another rank or stage must not take memory here.
TEST(UnreadScopes, LeaveThePagesEmpty) {
  const TemporaryFolder folder;
  for (const auto level : {PageLevel::kModel, PageLevel::kBlock, PageLevel::kLeaf}) {
    const auto pages = some_pages();
    const Weights w(
        stored(folder, {{"here.weight", at::ones({8, 4})}, {"there.weight", at::ones({512, 512})}}),
        {}, {.paging = {.pages = pages, .level = level}});
    const auto here = (w / "here").paged(level), there = (w / "there").unread().paged(level);
    EXPECT_NE(here.page().pages(), nullptr);
    EXPECT_EQ(there.page().pages(), nullptr);
    EXPECT_FALSE(there.tensor("weight", {512, 512}).defined());
    const auto view = here.tensor("weight", {8, 4});
    w.finish();
    pages->finish();
    EXPECT_EQ(pages->page_bytes(), level == PageLevel::kModel ? 2 * 4096 : 4096);
    const auto in_use = here.page().pages();
    in_use->enter(level == PageLevel::kModel ? 1 : 0);
    EXPECT_TRUE(view.eq(1).all().item<bool>());
    in_use->leave(level == PageLevel::kModel ? 1 : 0);
  }
}

TEST(BlocksPerPage, CountOnlyIfPagesHoldBlocks) {
  for (const auto& [level, want] :
       {std::pair(PageLevel::kModel, 1), {PageLevel::kBlock, 5}, {PageLevel::kLeaf, 1}}) {
    const auto w =
        Weights::synthetic({.paging = {.pages = some_pages(), .level = level, .blocks = 5}});
    EXPECT_EQ(w.blocks_per_page(), want) << int(level);
  }
  const auto w =
      Weights::synthetic({.paging = {.pages = {}, .level = PageLevel::kBlock, .blocks = 5}});
  EXPECT_EQ(w.blocks_per_page(), 1) << "without pages";
}

// Progress counts tables, too; a load that seems to stop at 90 % worries its user.
TEST(TablesRead, CountAsProgress) {
  const TemporaryFolder folder;
  std::int64_t told = 0;
  BytesRead read;
  const Weights w(stored(folder, {{"a.weight", at::ones({6, 4})}}), {},
                  {.on_bytes = [&](std::int64_t bytes) { told += bytes; },
                   .on_read = [&](const BytesRead& more) { read += more; }});
  (void)(w / "a").table("weight", {6, 4});
  EXPECT_EQ(told, 96);
  EXPECT_EQ(read.all, 96);
}

TEST(Sharding, SaysHowOutputsAreMadeWhole) {
  auto unsummed = row_parallel();
  unsummed.outputs = Outputs::Are::kWhole;
  run_ranks({.size = 2}, [&](const Group& ranks) {
    for (const auto& [sharding, want] : {std::pair(row_parallel(), Outputs::Are::kSummed),
                                         {unsummed, Outputs::Are::kWhole},
                                         {column_parallel(), Outputs::Are::kShared},
                                         {column_parallel_gathered(), Outputs::Are::kGathered}}) {
      const auto w = Weights::synthetic({.tensor_parallel = ranks}, {{"a", sharding}});
      EXPECT_EQ((w / "a").outputs().are, want) << int(want);
      EXPECT_EQ((w / "b").outputs().are, Outputs::Are::kWhole);
    }
  });
}

}  // namespace braid::load_edges_test
