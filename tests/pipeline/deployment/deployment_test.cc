// What deploy() settles, on this machine and on described ones.
#include "pipeline/deployment/deployment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <regex>

#include "message_of.h"
#include "pipeline/devices/devices.h"
#include "pipeline/engine/engine.h"
#include "pipeline/loaded/model.h"
#include "pipeline/planner/costs/memory.h"
#include "temporary_folder.h"

namespace braid::deployment_test {

using testing::HasSubstr;

const std::filesystem::path kDemo = std::filesystem::path(BRAID_SOURCE_DIR) / "models/demo";

Host host_of(const std::string& devices) { return described_host(devices_named("", devices)); }

DeployOptions flux_on_gpu() {
  return {.pipeline = {.model = "", .device = "cuda", .memory = {.fit = Fit::kAuto}},
          .synthetic = "flux1-dev"};
}

TEST(Deployment, IsWhatTheOptionsSayByDefault) {
  const auto d = deploy({.model = kDemo});
  EXPECT_EQ(d.options.model, kDemo);
  EXPECT_EQ(d.family->description().family, "FLUX.1");
  EXPECT_EQ(d.degrees().product(), 1);
  EXPECT_EQ(d.devices, std::vector<at::Device>{at::kCPU});
  EXPECT_EQ(d.dtype, choose_dtype(Dtype::kAuto, d.files->open("transformer").dtype(), at::kCPU));
  EXPECT_FALSE(d.memory_plan || d.layout_plan || d.preset || d.pages);
}

// 33.6 GB of weights in bfloat16: a card of 16 GiB has no room for them, one of 80 GiB has.
TEST(Deployment, OffloadsWhatACardHasNoRoomForIfAsked) {
  const auto small = deploy(flux_on_gpu(), host_of("1xrx-7800-xt"));
  ASSERT_TRUE(small.memory_plan);
  EXPECT_TRUE(small.is_budget_implied);
  EXPECT_NE(small.options.memory.offload.transformer, OffloadMode::kNone);
  EXPECT_EQ(small.options.memory.quantize, Quantize::kNone);
  EXPECT_LE(small.memory_plan->device_peak, small.budget.device);
  const auto large = deploy(flux_on_gpu(), host_of("1xh100"));
  EXPECT_EQ(large.options.memory.offload.transformer, OffloadMode::kNone);
  auto as_asked = flux_on_gpu();
  as_asked.pipeline.memory.fit = Fit::kAsAsked;
  const auto untouched = deploy(as_asked, host_of("1xrx-7800-xt"));
  EXPECT_EQ(untouched.options.memory.offload.transformer, OffloadMode::kNone);
  EXPECT_FALSE(untouched.memory_plan);
}

TEST(Deployment, KeepsTheSettingsThatAreStated) {
  auto asked = flux_on_gpu();
  asked.pipeline.memory.offload.prefetch = 3;  // not the default: stated
  asked.pipeline.memory.budget.device = 12'000'000'000;
  EXPECT_EQ(deploy(asked, host_of("1xrx-7800-xt")).options.memory.offload.prefetch, 3);
  asked.pipeline.memory.offload.prefetch = 1;
  asked.stated = StatedMemory{.transformer = true};  // even the default
  const auto refusal = message_of([&] { (void)deploy(asked, host_of("1xrx-7800-xt")); });
  EXPECT_THAT(refusal, HasSubstr("does not fit 12.0 GB"));
}

TEST(Deployment, TakesTheNameThatPipelineParallelismHadBefore) {
  auto asked = flux_on_gpu();
  asked.pipeline.devices = {"cuda:0-1"};
  asked.pipeline.layout.layer_split = 2;
  EXPECT_EQ(deploy(asked, host_of("2xh100")).degrees(), Degrees{.pp = 2});
  asked.pipeline.layout.pp = 2;
  EXPECT_EQ(deploy(asked, host_of("2xh100")).degrees(), Degrees{.pp = 2});
  for (const int other : {3, -5}) {
    asked.pipeline.layout.layer_split = other;
    EXPECT_THAT(message_of([&] { (void)deploy(asked, host_of("2xh100")); }),
                HasSubstr(text_of("`pp` and `layer_split` are two names of one degree, they should "
                                  "not be 2 and ",
                                  other)));
  }
}

TEST(Deployment, ChoosesTheDegreesThatThePlannerPutsFirstIfAsked) {
  auto asked = flux_on_gpu();
  asked.pipeline.devices = {"cuda:0-3"};
  asked.pipeline.layout.fit = Fit::kAuto;
  const auto host = host_of("4xh100");
  const auto d = deploy(asked, host);
  ASSERT_TRUE(d.layout_plan);
  EXPECT_EQ(d.degrees().product(), 4);
  const auto devices = devices_named("", "4xh100");
  const auto job = job_of(d, {});
  const auto best = plan_layouts(job, {devices, link_of(devices), link_of(devices)}).front().grid;
  EXPECT_EQ(to_string(d.degrees()), to_string(best));
  asked.pipeline.layout.tp = 2;
  EXPECT_THAT(message_of([&] { (void)deploy(asked, host); }), HasSubstr("no degrees of its own"));
}

TEST(Deployment, StaysTheSameWhenItsOptionsAreDeployedAgain) {
  auto asked = flux_on_gpu();
  asked.pipeline.devices = {"cuda:0-1"};
  asked.pipeline.layout.fit = Fit::kAuto;
  const auto once = deploy(asked, host_of("2xrtx-4090"));
  asked.pipeline = once.options;
  const auto again = deploy(asked, host_of("2xrtx-4090"));
  EXPECT_EQ(to_string(again.degrees()), to_string(once.degrees()));
  EXPECT_EQ(again.devices, once.devices);
  EXPECT_EQ(again.options.memory.offload.transformer, once.options.memory.offload.transformer);
  EXPECT_EQ(again.options.memory.offload.resident, once.options.memory.offload.resident);
}

// Devices whose speeds are told instead of measured.
class MeasuredShares : public testing::Test {
 protected:
  static constexpr double kTera = 1e12;
  Host host(const std::string& devices, std::map<std::string, double> flops) {
    auto told = host_of(devices);
    told.speeds = folder_.path();
    told.measure = [=, this, kind = told.kind](at::Device device, const TimedProduct& product) {
      EXPECT_EQ(product.width, 3072);  // FLUX.1's
      ++measured_;
      return flops.at(kind(device));
    };
    return told;
  }
  static DeployOptions split(Layout layout, std::vector<std::string> devices) {
    layout.shares_fit = Fit::kAuto;
    auto asked = flux_on_gpu();
    asked.pipeline.devices = std::move(devices);
    asked.pipeline.layout = layout;
    return asked;
  }

  TemporaryFolder folder_;
  int measured_ = 0;
};

TEST_F(MeasuredShares, AreEighthsOfTheFastestAndKept) {
  const auto asked = split({.tp = 2}, {"cuda:0", "cuda:1"});
  const auto d = deploy(asked, host("h100,a100", {{"h100", 600 * kTera}, {"a100", 225 * kTera}}));
  EXPECT_EQ(d.degrees(), (Degrees{.tp = 2, .shares = {.tp = {8, 3}}}));
  EXPECT_EQ(d.options.layout.shares, (AxisShares{.tp = {8, 3}}));
  EXPECT_EQ(d.options.layout.shares_fit, Fit::kAsAsked);
  EXPECT_EQ(d.measured_flops, (std::vector{600 * kTera, 225 * kTera}));
  EXPECT_EQ(measured_, 2);
  // Another load, the same shares.
  const auto busy = host("h100,a100", {{"h100", 100 * kTera}, {"a100", 225 * kTera}});
  EXPECT_EQ(deploy(asked, busy).degrees(), d.degrees());
  EXPECT_EQ(measured_, 2);
  auto again = asked;
  again.pipeline = d.options;
  EXPECT_EQ(deploy(again, host_of("h100,a100")).degrees(), d.degrees());
}

TEST_F(MeasuredShares, AreAlikeOnDevicesThatAre) {
  const auto d = deploy(split({.tp = 2}, {"cuda:0-1"}), host("2xh100", {{"h100", kTera}}));
  EXPECT_EQ(d.degrees(), Degrees{.tp = 2});
  EXPECT_EQ(measured_, 1);
  // All ranks of a CPU have as many threads.
  const auto cpu = deploy(split({.ring = 2}, {"cpu", "cpu"}), host("cpu", {{"cpu", 0.1 * kTera}}));
  EXPECT_EQ(cpu.degrees(), Degrees{.ring = 2});
  EXPECT_EQ(cpu.measured_flops, (std::vector{0.1 * kTera, 0.1 * kTera}));
}

// Two ranks have half of a card each.
TEST_F(MeasuredShares, DivideADeviceThatRanksShare) {
  const auto d = deploy(split({.ulysses = 3}, {"cuda:0", "cuda:0", "cuda:1"}),
                        host("2xh100", {{"h100", kTera}}));
  EXPECT_EQ(d.options.layout.shares, (AxisShares{.ulysses = {4, 4, 8}}));
  const auto mixed = deploy(split({.dp = 2}, {"cuda:0", "cpu"}),
                            host("h100,cpu", {{"h100", kTera}, {"cpu", kTera / 4}}));
  EXPECT_EQ(mixed.options.layout.shares, (AxisShares{.dp = {8, 2}}));
}

TEST_F(MeasuredShares, OfASingleRankNeedNoMeasurement) {
  EXPECT_EQ(deploy(split({}, {"cuda"}), host("h100", {})).degrees(), Degrees{});
  EXPECT_EQ(measured_, 0);
}

TEST_F(MeasuredShares, AreRefusedWhereTheyCannotBe) {
  const auto refusal = [&](const DeployOptions& asked, const Host& where) {
    return message_of([&] { (void)deploy(asked, where); });
  };
  const auto cards = host("2xh100", {{"h100", kTera}});
  auto asked = split({.tp = 2, .shares = {.tp = {3, 2}}}, {"cuda:0-1"});
  EXPECT_THAT(refusal(asked, cards), HasSubstr("should not be given as well"));
  asked = split({.fit = Fit::kAuto}, {"cuda:0-1"});
  EXPECT_THAT(refusal(asked, cards), HasSubstr("need degrees that are given"));
  asked = split({.tp = 2}, {"cuda:0-1"});
  EXPECT_THAT(refusal(asked, host_of("2xh100")), HasSubstr("cannot be measured: give shares"));
  asked = split({.tp = 2}, {"cuda:0", "cuda:0", "cuda:0"});
  EXPECT_THAT(refusal(asked, cards), HasSubstr("= 2, but there are 3 devices"));
  EXPECT_EQ(measured_, 0);
}

TEST_F(MeasuredShares, OfProcessesAreSettledWhenTheyHaveMet) {
  auto asked = split({.tp = 2}, {"cuda"});
  asked.pipeline.layout.ranks = Ranks::kProcesses;
  asked.pipeline.memory.budget = {.device = 16'000'000'000};
  auto launched = host("h100,a100", {});
  launched.launch = Launch{.launcher = "torchrun", .size = 2, .size_variable = "WORLD_SIZE"};
  auto d = deploy(asked, launched);
  EXPECT_EQ(d.degrees(), Degrees{.tp = 2});
  ASSERT_TRUE(d.until_met && d.memory_plan);
  const auto alike = d.memory_plan->device_peak;
  settle_shares_by_speed(d, {600 * kTera, 225 * kTera});
  EXPECT_FALSE(d.until_met);
  EXPECT_EQ(d.degrees(), (Degrees{.tp = 2, .shares = {.tp = {8, 3}}}));
  EXPECT_EQ(d.options.layout.shares, (AxisShares{.tp = {8, 3}}));
  EXPECT_EQ(d.measured_flops, (std::vector{600 * kTera, 225 * kTera}));
  EXPECT_NE(d.memory_plan->device_peak, alike) << "memory is planned for these shares";
  EXPECT_EQ(measured_, 0);
}

TEST(Deployment, GivesEachProcessItsDevice) {
  auto host = host_of("2xrtx-4090");
  DeployOptions asked{.pipeline = {.model = "", .device = "cuda", .layout = {.tp = 2}},
                      .synthetic = "flux1-dev"};
  asked.pipeline.layout.ranks = Ranks::kProcesses;
  for (const int rank : {0, 1}) {
    host.launch = Launch{.rank = rank, .size = 2, .local_rank = rank};
    const auto d = deploy(asked, host);
    EXPECT_EQ(d.options.device, "cuda:" + std::to_string(rank));
    EXPECT_EQ(d.devices[std::size_t(rank)], at::Device(at::kCUDA, at::DeviceIndex(rank)));
    EXPECT_EQ(d.places.devices, (std::vector<std::string>{"cuda:0", "cuda:1"}));
  }
  asked.pipeline.layout.ranks = Ranks::kThreads;  // a launcher does not matter then
  EXPECT_EQ(deploy(asked, host).options.device, "cuda");
}

TEST(Deployment, RefusesARequestThatTheModelCannotTake) {
  const Request looking{.prompts = {"a"},
                        .pictures = {.references = {{.width = 1, .height = 1, .rgb = {0, 0, 0}}}}};
  const auto refusal =
      message_of([&] { (void)deploy({.pipeline = {.model = kDemo}, .request = looking}); });
  EXPECT_THAT(refusal, HasSubstr("looks at no references"));
}

TEST(Deployment, WarnsOnTheFirstRankOnly) {
  auto host = host_of("2xrtx-4090");
  int warned = 0;
  DeployOptions asked{.pipeline = {.model = "", .device = "cuda", .layout = {.tp = 2}},
                      .synthetic = "flux1-dev",
                      .warn = [&](const std::string&) { ++warned; }};
  asked.pipeline.memory.keep_dense = {"no.such.layer"};
  asked.pipeline.layout.ranks = Ranks::kProcesses;
  for (const int rank : {0, 1}) {
    host.launch = Launch{.rank = rank, .size = 2, .local_rank = rank};
    (void)deploy(asked, host);
    EXPECT_EQ(warned, 1) << "rank " << rank;
  }
}

TEST(Deployment, RefusesToRunNoModel) {
  EXPECT_THAT(message_of([] { (void)deploy(PipelineOptions()); }),
              HasSubstr("no model is named: `model` should be a folder, a file or a name"));
}

// None of them stands for no limit.
TEST(Deployment, RefusesNegativeLimits) {
  const auto refusal = [](const std::function<void(PipelineOptions&)>& change) {
    PipelineOptions options{.model = kDemo};
    change(options);
    return message_of([&] { (void)deploy(options); });
  };
  EXPECT_THAT(refusal([](auto& o) { o.memory.budget.device = -1; }),
              HasSubstr("memory.budget.device should be at least 0 bytes, it is -1"));
  EXPECT_THAT(refusal([](auto& o) { o.memory.budget.host = -5; }),
              HasSubstr("memory.budget.host should be at least 0 bytes, it is -5"));
  EXPECT_THAT(refusal([](auto& o) { o.memory.offload.resident = -2; }),
              HasSubstr("memory.offload.resident should be"));
  EXPECT_THAT(refusal([](auto& o) { o.condition_cache = -1; }),
              HasSubstr("condition_cache should be at least 0 bytes, it is -1"));
  EXPECT_EQ(refusal([](auto& o) { o.memory.offload.resident = -1; }), "") << "all";
}

// Only decoding in tiles makes this request fit.
TEST(Deployment, DecodesInTilesIfThePlanDoes) {
  auto asked = flux_on_gpu();
  asked.pipeline.memory.budget.device = 5'500'000'000;
  asked.request = Request{.prompts = {"a"}, .width = 2048, .height = 2048};
  const auto d = deploy(asked, host_of("1xrx-7800-xt"));
  EXPECT_EQ(d.tiled(*asked.request).vae_tiling, VaeTiling::kOn);
  asked.request->vae_tiling = VaeTiling::kOff;
  EXPECT_EQ(d.tiled(*asked.request).vae_tiling, VaeTiling::kOff);
}

// Counts how often each file below a folder is opened, by the kernel's own events.
class Opens {
 public:
  explicit Opens(const std::filesystem::path& folder) : queue_(::inotify_init1(IN_NONBLOCK)) {
    watch(folder);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
      if (entry.is_directory()) watch(entry.path());
  }
  ~Opens() { ::close(queue_); }

  std::map<std::string, int> by_file() {
    std::map<std::string, int> counts;
    alignas(inotify_event) char bytes[4096];
    for (;;) {
      const auto size = ::read(queue_, bytes, sizeof bytes);
      if (size <= 0) return counts;
      for (const char* at = bytes; at < bytes + size;) {
        const auto& event = *reinterpret_cast<const inotify_event*>(at);
        at += sizeof event + event.len;
        if (event.len > 0 && (event.mask & IN_ISDIR) == 0)
          ++counts[(folders_.at(event.wd) / event.name).string()];
      }
    }
  }

 private:
  void watch(const std::filesystem::path& folder) {
    folders_[::inotify_add_watch(queue_, folder.c_str(), IN_OPEN)] = folder;
  }

  int queue_;
  std::map<int, std::filesystem::path> folders_;
};

// `generate --memory 400MB --tp 2` plans, loads on two ranks and draws in this way.
TEST(Deployment, OpensEachFileOfWeightsOnce) {
  const TemporaryFolder own;  // other tests open the model's files, too
  const auto model = own / "demo";
  std::filesystem::copy(kDemo, model, std::filesystem::copy_options::recursive);
  Opens opens(model);
  PipelineOptions options{.model = model, .dtype = Dtype::kFloat32, .layout = {.tp = 2}};
  options.memory.budget.device = 400'000'000;
  const Engine engine(deploy(options), {});
  (void)engine.generate({.prompts = {"a"}, .width = 64, .height = 64, .steps = 1}, {});
  int weights = 0;
  for (const auto& [file, count] : opens.by_file()) {
    if (!file.ends_with(".safetensors")) continue;
    ++weights;
    EXPECT_EQ(count, 1) << file;
  }
  EXPECT_EQ(weights, 4);  // two text encoders, the transformer, the autoencoder
}

TEST(Pipeline, FitsABudgetAsADeploymentDoes) {
  PipelineOptions options{.model = kDemo, .dtype = Dtype::kFloat32};
  options.memory.fit = Fit::kAuto;  // files included
  options.memory.budget.device = 180'000'000;
  const auto d = deploy(options);
  ASSERT_TRUE(d.pages);
  const auto folder = d.pages->folder();
  const Request request{.prompts = {"a"}, .width = 64, .height = 64, .steps = 1};
  const auto fitted = Pipeline(options).generate(request);
  EXPECT_EQ(fitted.front().rgb,
            Pipeline({.model = kDemo, .dtype = Dtype::kFloat32}).generate(request).front().rgb);
  options.memory.fit = Fit::kAsAsked;
  EXPECT_THAT(message_of([&] { (void)Pipeline(options); }), HasSubstr("does not fit 180 MB"));
}

// Files are taken without being asked for, so the least that a refusal names is with them.
TEST(Deployment, FitsTheLeastThatItsRefusalNames) {
  for (const auto which : {&Budget::device, &Budget::host}) {
    const auto within = [&](double megabytes) {
      PipelineOptions options{.model = kDemo, .dtype = Dtype::kFloat32};
      options.memory.fit = Fit::kAuto;
      options.memory.budget.*which = std::int64_t(megabytes * 1e6);
      return deploy(options);
    };
    const auto refusal = message_of([&] { (void)within(50); });
    std::smatch least;
    ASSERT_TRUE(std::regex_search(refusal, least, std::regex("at least ([0-9.]+) MB"))) << refusal;
    const auto megabytes = std::stod(least[1]);  // of three digits
    EXPECT_TRUE(within(megabytes).pages) << refusal;
    EXPECT_THAT(message_of([&] { (void)within(megabytes - 1); }), HasSubstr("does not fit"));
  }
}

TEST(Deployment, RemovesItsFilesWithItsLastCopy) {
  PipelineOptions options{.model = kDemo, .dtype = Dtype::kFloat32};
  options.memory.fit = Fit::kAuto;
  options.memory.budget.device = 180'000'000;
  std::filesystem::path folder;
  {
    std::optional<Deployment> copy;
    {
      const auto d = deploy(options);
      ASSERT_TRUE(d.pages);
      folder = d.pages->folder();
      copy = d;
    }
    EXPECT_TRUE(std::filesystem::exists(folder));
  }
  EXPECT_FALSE(std::filesystem::exists(folder));
}

}  // namespace braid::deployment_test
