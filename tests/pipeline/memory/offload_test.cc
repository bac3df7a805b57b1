// Offloaded weights give the same bits: every mode, quantization and layout.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "base/error.h"
#include "models/flux/model.h"
#include "pipeline/engine/engine.h"
#include "pipeline/families/flux/flux.h"
#include "pipeline/planner/costs/held.h"
#include "pipeline/planner/planner.h"
#include "pipeline/proofs/probe.h"
#include "pipeline/proofs/verify.h"
#include "temporary_folder.h"
#include "weights/paging/counting_device.h"
#include "weights/paging/order_checker.h"

namespace braid::offload_test {

namespace fs = std::filesystem;
using testing::HasSubstr;

const fs::path kModel = fs::path(BRAID_SOURCE_DIR) / "models/demo";

Generated run(const Memory& memory, const Layout& layout = {}) {
  const Engine engine(
      {.model = kModel, .dtype = Dtype::kFloat32, .layout = layout, .memory = memory}, {});
  return engine.generate({.prompts = {"a red circle on a blue background", "a star"},
                          .width = 64,
                          .height = 48,
                          .steps = 2,
                          .max_sequence_length = 13},
                         {}, {.record = RecordTensors::kYes});
}

void expect_same(const Generated& got, const Generated& want) {
  for (const auto* name :
       {"prompt_embeds", "pooled_prompt_embeds", "velocity_first", "latents_final"})
    EXPECT_TRUE(at::equal(got.facts.recording.at(name), want.facts.recording.at(name))) << name;
  ASSERT_EQ(got.pictures.size(), want.pictures.size());
  for (std::size_t i = 0; i < got.pictures.size(); ++i)
    EXPECT_EQ(got.pictures[i].rgb, want.pictures[i].rgb);
}

Offload everything(OffloadMode mode) { return {.transformer = mode, .text = mode, .vae = mode}; }

struct Way {
  std::string name;
  Offload offload;
  Quantize codes;  // of the two that every second way is drawn with
  bool on_disk = false;
};

std::vector<Way> ways() {
  auto groups = everything(OffloadMode::kBlock);
  groups.blocks = 3;
  groups.prefetch = 2;
  auto half = everything(OffloadMode::kBlock);
  half.resident = 4;
  auto all = everything(OffloadMode::kBlock);
  all.resident = -1;
  using enum Quantize;
  return {{"model", everything(OffloadMode::kModel), kInt8Dynamic},
          {"block", everything(OffloadMode::kBlock), kInt8},
          {"groups", groups, kInt8Dynamic},
          {"half_resident", half, kInt8},
          {"all_resident", all, kInt8Dynamic},
          {"leaf", everything(OffloadMode::kLeaf), kInt8},
          {"sequential", everything(OffloadMode::kSequential), kInt8Dynamic},
          {"block_on_disk", everything(OffloadMode::kBlock), kInt8Dynamic, true},
          {"model_on_disk", everything(OffloadMode::kModel), kInt8, true}};
}

// One for each kind of codes, in memory and on a disk.
std::vector<Way> few_ways() {
  auto few = ways();
  std::erase_if(few, [](const Way& way) {
    return way.name != "half_resident" && way.name != "block_on_disk";
  });
  return few;
}

class Offloaded : public testing::TestWithParam<Way> {
 protected:
  void expect_same_bits(Quantize form, const Layout& layout) const;

  TemporaryFolder folder_;
};

void Offloaded::expect_same_bits(Quantize form, const Layout& layout) const {
  static std::map<std::pair<Quantize, int>, Generated> resident;
  Memory memory{.quantize = form, .quantize_text = form};
  const auto key = std::pair(form, layout.tp * layout.ring);
  if (!resident.contains(key)) resident[key] = run(memory, layout);
  memory.offload = GetParam().offload;
  memory.offload.checks_order = true;
  if (GetParam().on_disk) memory.offload.folder = folder_.path();
  expect_same(run(memory, layout), resident.at(key));
}

TEST_P(Offloaded, WeightsGiveTheSameBits) {
  expect_same_bits(Quantize::kNone, {});
  const int ring = GetParam().codes == Quantize::kInt8Dynamic ? 2 : 1;
  expect_same_bits(GetParam().codes, {.tp = 2, .ring = ring});
}

class SlowOffloaded : public Offloaded {};

TEST_P(SlowOffloaded, WeightsInEveryFormGiveTheSameBits) {
  for (const auto form :
       {Quantize::kNone, Quantize::kInt8, Quantize::kInt8Dynamic, Quantize::kFloat8})
    for (const auto& layout : {Layout{}, Layout{.tp = 2}, Layout{.tp = 2, .ring = 2}})
      expect_same_bits(form, layout);
}

const auto kNameOf = [](const auto& info) { return info.param.name; };
INSTANTIATE_TEST_SUITE_P(Ways, Offloaded, testing::ValuesIn(few_ways()), kNameOf);
INSTANTIATE_TEST_SUITE_P(SlowWays, Offloaded, testing::ValuesIn(ways()), kNameOf);
INSTANTIATE_TEST_SUITE_P(Ways, SlowOffloaded, testing::ValuesIn(ways()), kNameOf);

TEST(SlowOffload, PagesOnADiskServeTheNextRunToo) {
  const TemporaryFolder temporary;
  const auto& folder = temporary.path();
  Memory memory{.offload = everything(OffloadMode::kBlock)};
  memory.offload.folder = folder;
  const auto first = run(memory);
  std::map<fs::path, fs::file_time_type> files;
  for (const auto& entry : fs::directory_iterator(folder))
    files[entry.path()] = entry.last_write_time();
  EXPECT_GT(files.size(), 8u);
  expect_same(run(memory), first);
  for (const auto& entry : fs::directory_iterator(folder))
    EXPECT_EQ(files.at(entry.path()), entry.last_write_time());
}

// Small random transformer weights in pages, watched by the checker.
struct PagedFlux {
  PagedFlux(const Paging& how, const PageOptions& options) {
    device = std::make_shared<testing_pages::CountingDevice>();
    checker = std::make_shared<OrderChecker>(device);
    pages = std::make_shared<Pages>(checker, at::kCPU, options);
    LoadOptions load{.quantize = Quantize::kInt8, .paging = how};
    load.paging.pages = pages;
    const auto w = Weights::synthetic(load);
    flux.emplace(config, w);
    page = w.page();
    pages->finish();
  }
  PartPages planned(const Paging& how) const {
    auto job = surveyed({.family = make_flux_family({.flux = config}), .dtype = at::kFloat});
    const auto mode = how.level == PageLevel::kBlock ? OffloadMode::kBlock : OffloadMode::kLeaf;
    return pages_of(job.tensors->of(Part::Role::kDenoiser), {},
                    {.quantize = Quantize::kInt8, .offload = mode, .blocks = int(how.blocks)});
  }
  void begin_picture() {
    const auto in_use = page.use();
    const Probe probe{.family = make_flux_family({.flux = config, .vae = {.latent_channels = 4}}),
                      .size = {.width = 32, .height = 32},
                      .text_tokens = 3,
                      .dtype = at::kFloat};
    in = inputs_of(probe, 1, at::kCPU);
    in.modulations_BM = flux->modulations({flux->condition(in)}).front();
  }
  void step() const {
    const auto in_use = page.use();
    (void)flux->advance(in, {});
  }

  const FluxConfig config{.in_channels = 16,
                          .out_channels = 16,
                          .num_double = 2,
                          .num_single = 3,
                          .num_heads = 2,
                          .head_width = 16,
                          .text_width = 8,
                          .pooled_width = 6,
                          .axes = {4, 6, 6}};
  std::shared_ptr<testing_pages::CountingDevice> device;
  std::shared_ptr<OrderChecker> checker;
  std::shared_ptr<Pages> pages;
  Page page;
  std::optional<Flux> flux;
  DenoiserInput in;
};

TEST(Offload, NeitherWaitsNorAllocatesInTheLoop) {
  for (const auto& how :
       {Paging{.level = PageLevel::kModel}, Paging{.level = PageLevel::kBlock},
        Paging{.level = PageLevel::kBlock, .blocks = 2}, Paging{.level = PageLevel::kLeaf}})
    for (const int prefetch : {0, 1, 3}) {
      PagedFlux paged(how, {.prefetch = prefetch});
      paged.checker->enter_loop();
      paged.begin_picture();
      for (int i = 0; i < 3; ++i) paged.step();
      paged.checker->leave_loop();
      EXPECT_THAT(paged.checker->hazards(), testing::IsEmpty())
          << int(how.level) << " " << paged.checker->hazards().front().sentence;
    }
}

// A double block's layers are used in another order than they are built: the first step shows it.
// Every slot has several pages here; a page alone in its slot would stay. Modulation layers are no
// part of a step.
TEST(Offload, CopiesABlockOnceAStepAndWhatModulatesItOnceAPicture) {
  const Paging blocks{.level = PageLevel::kBlock}, leaves{.level = PageLevel::kLeaf},
      pairs{.level = PageLevel::kBlock, .blocks = 2};
  for (const auto& [how, prefetch] :
       {std::pair(blocks, 0), std::pair(blocks, 1), std::pair(pairs, 0), std::pair(leaves, 0),
        std::pair(leaves, 1), std::pair(leaves, 3)}) {
    PagedFlux paged(how, {.prefetch = prefetch});
    const auto planned = paged.planned(how);
    const auto of_steps =
        SlotUse(planned, {.prefetch = prefetch, .resident = 0}).copied(PageUse::kRepeated).bytes;
    EXPECT_LT(of_steps, paged.pages->page_bytes() * 4 / 5);
    for (int picture = 0; picture < 2; ++picture) {
      paged.begin_picture();
      for (int i = 0; i < 2; ++i) paged.step();
      const auto before = paged.device->copied_bytes();
      for (int i = 0; i < 3; ++i) paged.step();
      EXPECT_EQ(paged.device->copied_bytes() - before, 3 * of_steps)
          << int(how.level) << ", " << prefetch << " ahead, picture " << picture;
    }
  }
  PagedFlux whole({.level = PageLevel::kModel}, {.prefetch = 0});
  whole.begin_picture();
  for (int i = 0; i < 3; ++i) whole.step();
  EXPECT_EQ(whole.device->copied_bytes(), whole.pages->page_bytes()) << "it stays, being alone";
}

TEST(Offload, VerifyProvesALayoutWithPages) {
  Memory memory{.quantize = Quantize::kInt8, .offload = everything(OffloadMode::kBlock)};
  const auto deployment =
      deploy({.model = kModel, .dtype = Dtype::kFloat32, .layout = {.tp = 2}, .memory = memory});
  const auto verdict = verify(deployment, {.probe = {.width = 64, .height = 64}});
  EXPECT_EQ(verdict.first_divergent(), nullptr);
}

TEST(SlowOffload, DiskReadsGiveTheSameBits) {
  const TemporaryFolder temporary;
  const auto& folder = temporary.path();
  const auto want = run({});
  for (const auto reads : {DiskReads::kDirect, DiskReads::kMapped, DiskReads::kAuto}) {
    Memory memory{.offload = everything(OffloadMode::kLeaf)};
    memory.offload.folder = folder;
    memory.offload.reads = reads;
    expect_same(run(memory), want);
  }
}

TEST(Offload, RefusesWhatMakesNoSenseWithASentence) {
  const auto refusal = [](const Offload& offload) -> std::string {
    try {
      run({.offload = offload});
    } catch (const InputError& e) {
      return e.what();
    }
    return "accepted";
  };
  auto offload = everything(OffloadMode::kBlock);
  offload.blocks = 0;
  EXPECT_THAT(refusal(offload), HasSubstr("1 to 1024"));
  offload = everything(OffloadMode::kBlock);
  offload.prefetch = -1;
  EXPECT_THAT(refusal(offload), HasSubstr("between 0 and 64"));
  offload = everything(OffloadMode::kBlock);
  offload.folder = "/proc/no/such";
  EXPECT_THAT(refusal(offload), HasSubstr("cannot make the folder of pages"));
}

}  // namespace braid::offload_test
