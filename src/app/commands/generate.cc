#include "app/commands/commands.h"

#include <ATen/Parallel.h>

#include <nlohmann/json.hpp>

#include "app/commands/deployments.h"
#include "app/commands/plan_here.h"
#include "app/files/files_apart.h"
#include "app/files/input_pictures.h"
#include "app/files/latents_file.h"
#include "app/files/output_files.h"
#include "app/files/picture_text.h"
#include "app/files/prompt_enhancer.h"
#include "app/files/prompts.h"
#include "app/flags/flag_groups.h"
#include "app/flags/memory_words.h"
#include "app/machine/hardware.h"
#include "app/machine/launched.h"
#include "app/machine/stop_signals.h"
#include "app/print/failure.h"
#include "app/print/progress.h"
#include "app/print/report.h"
#include "app/print/standard_output.h"
#include "app/words/readable.h"
#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"
#include "image/parameters.h"
#include "net/enhancer/enhanced_request.h"
#include "pipeline/devices/devices.h"
#include "pipeline/engine/engine.h"
#include "pipeline/families/description.h"
#include "pipeline/memory/presets.h"
#include "pipeline/request/settings.h"
#include "serve/body/picture_request.h"
#include "weights/files/safetensors_writer.h"

namespace braid {
namespace {

constexpr std::size_t kLongestShown = 8000;  // bytes of a prompt

// One run of the command: what its callbacks share.
class GenerateRun {
 public:
  // The request has its prompts.
  GenerateRun(const GenerateFlags& flags, Request request, InputPictures read,
              PhaseLog::Clock::time_point began)
      : flags_(flags),
        request_(std::move(request)),
        began_(began),
        is_first_(is_first_rank()),
        display_(display_on_standard_error(!is_first_ || flags.verbosity == Verbosity::kQuiet)) {
    if (is_first_) files_.emplace(flags.output, int(request_.prompts.size()) * request_.num_images);
    request_.pictures = std::move(read.pictures);
    inputs_ = std::move(read.files);
    if (flags.is_seed_random) request_.seed = serve::random_seed();
  }

  void prepare();
  int run();

 private:
  void read_latents_given();
  void deploy_here();
  void check_form() const;
  void tell_plans();
  void tell_shares();
  void take_shares(const Engine& engine);
  void tell_memory();
  void warn(const std::string& sentence);
  void check_written() const;
  void enhance();
  void deploy_for(const Request& drawn);
  void share_prompts(const Engine& engine);
  RunFacts draw();
  void share_seed(const Engine& engine);
  void share_tiling(const Engine& engine);
  void save(const Picture& picture);
  void tell_choices(at::ScalarType dtype);
  void report(const RunFacts& facts) const;
  const PipelineOptions& options() const { return deployment_->options; }
  int threads() const { return options().threads > 0 ? options().threads : at::get_num_threads(); }
  Hooks hooks();

  const GenerateFlags& flags_;
  Request request_;
  std::vector<std::string> originals_;    // of prompts that were enhanced
  std::optional<Deployment> deployment_;  // once prepared
  std::optional<OutputFiles> files_;      // on the first rank
  PhaseLog::Clock::time_point began_;     // the program
  StopSignals signals_;
  bool is_first_;  // the only one that writes and prints
  ProgressDisplay display_;
  std::vector<InputFile> inputs_;
  Settings settings_;
  std::vector<SavedPicture> saved_;
  std::vector<std::string> warnings_;
};

// A net that would follow nothing is a mistake. Only its files tell what it follows.
void check_followed(const PicturesIn& in, const PicturesTaken& taken) {
  const bool fills_in = taken.nets_follow == PicturesTaken::NetsFollow::kMasked;
  require(!fills_in || in.init, "--controlnet needs --init and --mask: it fills a picture in");
  require(taken.controlnet_modes.empty() || fills_in || !in.controls.empty(),
          "--controlnet needs --control: it follows a picture, and fills none in");
}

// Finds all errors that can be found before a large model is loaded.
void GenerateRun::prepare() {
  read_latents_given();
  deploy_here();
  request_ = deployment_->tiled(std::move(request_));
  (void)settle(*deployment_, request_, {});  // again when the weights are loaded, with warnings
  if (!is_first_) return;
  const auto& limits = deployment_->family->description().limits;
  check_followed(request_.pictures, limits.pictures);
  const auto frames = drawn_size(request_, limits).frames - limits.frames.unreturned();
  constexpr std::size_t kDigitsOfLayers = 1, kDigits = 3;
  const auto files = std::int64_t(request_.prompts.size()) * request_.num_images * frames;
  require(files <= kMostPictures, "at most ", kMostPictures, " files can be written at once, ",
          files, " were asked for: lower --num-images or give fewer prompts");
  if (frames > 1)
    files_.emplace(flags_.output, int(files),
                   limits.frames.kind == FrameKind::kLayer ? kDigitsOfLayers : kDigits);
  check_form();
  check_written();
  tell_plans();
}

void GenerateRun::read_latents_given() {
  if (flags_.latents.empty()) return;
  const auto& picture = flags_.latents_picture;
  request_.latents = read_latents(flags_.latents, picture);
  const MappedFile file(flags_.latents);
  const std::string_view bytes(reinterpret_cast<const char*>(file.bytes().data()),
                               file.bytes().size());
  auto name = flags_.latents.filename().string();
  if (picture) name += "=" + std::to_string(*picture);
  inputs_.push_back({.role = "latents", .name = name, .sha256 = sha256_hex(bytes)});
}

// What the file cannot hold would be found once the picture is drawn.
void GenerateRun::check_form() const {
  const auto& in = request_.pictures;
  auto size = drawn_size(request_, deployment_->family->description().limits);
  if (in.padding_crop && in.init) size = {.width = in.init->width, .height = in.init->height};
  check_sides(files_->form(), size.width, size.height);
}

// Boxes are called by their file.
void GenerateRun::deploy_here() {
  try {
    deployment_ = deployed(
        flags_, request_, [this](const std::string& choice) { display_.say(with_flags(choice)); },
        [this](const std::string& sentence) { warn(sentence); });
  } catch (const InputError& refusal) {
    const std::string sentence = refusal.what();
    if (flags_.boxes.empty() || sentence.find("`boxes`") == sentence.npos) throw;
    throw InputError(with_name(sentence, "`boxes`", flags_.boxes.string()));
  }
}

// What was chosen and not asked for by name, and what may not fit.
void GenerateRun::tell_plans() {
  const auto& d = *deployment_;
  for (const auto& sentence : flags_.unused) warn(sentence);
  if (d.layout_plan)
    display_.say(text_of("layout ", layout_name(d.layout_plan->grid), ": predicted ",
                         readable_seconds(d.layout_plan->seconds_per_picture), " per picture"));
  if (!d.measured_flops.empty()) tell_shares();
  if (const auto idle = idle_ranks_here(d, request_)) warn(*idle);
  if (const auto slower = slower_split_here(d, request_)) warn(*slower);
  if (const auto slower = slower_codes_here(d, request_)) display_.say(*slower);
  if (d.preset) display_.say(text_of("preset ", d.preset->name, ": ", d.preset->why));
  if (d.memory_plan) return tell_memory();
  if (is_launched()) return;
  if (const auto shortage = shortage_here(d, request_, free_host_bytes())) warn(*shortage);
}

void GenerateRun::tell_shares() {
  const auto shares = to_string(deployment_->degrees().shares);
  display_.say("shares by measured speed: " + (shares.empty() ? "alike" : shares));
}

// Processes have settled them when they met.
void GenerateRun::take_shares(const Engine& engine) {
  deployment_ = engine.deployment();
  request_ = deployment_->tiled(std::move(request_));
  if (is_first_) tell_shares();
}

void GenerateRun::tell_memory() {
  const auto& d = *deployment_;
  const auto& plan = *d.memory_plan;
  const bool is_as_asked =
      d.is_budget_implied && flags_of(plan.memory) == flags_of(flags_.options.memory);
  if (is_as_asked) return;
  const auto where = d.is_on_host() ? ComputedOn::kHost : ComputedOn::kGpus;
  auto sentence = "memory: " + memory_plan_sentence(plan, where);
  if (d.is_budget_implied)
    sentence += text_of(plan.device_peak <= d.budget.device ? ", of " : ", more than ",
                        readable_bytes(double(d.budget.device)), " that a GPU has for it");
  if (d.pages)
    sentence +=
        text_of("; ", readable_bytes(double(plan.files)), " of files are in ",
                d.pages->folder().string(), " until the run ends; --offload-dir DIR keeps them");
  display_.say(sentence);
}

void GenerateRun::warn(const std::string& field_named) {
  const auto sentence = with_flags(field_named);
  warnings_.push_back(sentence);
  display_.say("warning: " + sentence);
}

// Nothing that is read may be replaced, by any of its names.
void GenerateRun::check_written() const {
  std::vector<NamedFile> written;
  if (files_->is_standard_output())
    require(!flags_.json, "--json and --output ", flags_.output.path.string(),
            " both write to standard output: give a file for the picture");
  else
    for (int k = 0; k < files_->num_pictures(); ++k)
      written.push_back({"--output", files_->of_picture(k)});
  if (!flags_.dump.empty()) {
    require_writable("--dump", flags_.dump);
    written.push_back({"--dump", flags_.dump});
  }
  require_apart(written, files_read(flags_, deployment_->options));
}

Hooks GenerateRun::hooks() {
  return {.progress = [this](const Progress& progress) { display_.show(progress); },
          .picture =
              [this](Picture& picture) {
                save(picture);
                picture.rgb = picture.alpha = {};  // it is in the file
              },
          .warning = [this](const std::string& sentence) { warn(sentence); },
          .stop = signals_.token()};
}

int GenerateRun::run() {
  try {
    if (!flags_.enhancer.url.empty()) enhance();
    const auto facts = draw();
    if (flags_.json && is_first_) report(facts);
  } catch (const Cancelled&) {
    display_.clear();
    if (signals_.received() == 0) let_first_rank_end();  // launchers send all ranks a signal
    const bool is_mine = signals_.received() > 0;
    display_.say(is_mine ? "stopped" : "stopped by another rank");
    return is_mine ? kSignalled + signals_.received() : kFailed;
  }
  return kSuccess;
}

// Only the first rank asks. The others have made their plans for the request's own size, so a
// launch keeps to that.
void GenerateRun::enhance() {
  if (!is_first_) return;
  const auto enhancer = prompt_enhancer(flags_.enhancer, options().model,
                                        net::answers_in_folder(net::answer_folder()));
  const auto info = info_of(deployment_->family->description());
  auto drawn = request_;
  originals_ = request_.prompts;
  for (std::size_t i = 0; i < originals_.size(); ++i) {
    display_.say("asking the enhancer at " + net::host_of_url(flags_.enhancer.url));
    const auto enhanced = enhancer.enhance(net::plain_prompt(request_, i), signals_.token());
    drawn = net::with_enhanced(std::move(drawn), i, enhanced, info);
    if (is_launched()) drawn.width = request_.width, drawn.height = request_.height;
    deploy_for(drawn);
    if (enhanced.keep) enhanced.keep();
    display_.say("prompt: " + one_line(enhanced.prompt, kLongestShown));
  }
}

// What cannot be drawn of an answer is the enhancer's mistake, not the user's.
void GenerateRun::deploy_for(const Request& drawn) {
  try {
    (void)settle(drawn, deployment_->family->description().limits, {});
    if (drawn.width != request_.width || drawn.height != request_.height)
      deployment_ = deployed(flags_, drawn);
    request_ = deployment_->tiled(drawn);
  } catch (const InputError& refusal) {
    throw net::EnhancerFailure(net::EnhancerFailure::Kind::kNonsense,
                               text_of("its answer cannot be drawn: ", refusal.what()));
  }
}

// All processes draw what the first one's enhancer wrote. One that asks for none hears it too, and
// keeps its own prompts: they are compared.
void GenerateRun::share_prompts(const Engine& engine) {
  const Json said = {request_.prompts, request_.boxes};
  const auto heard = parse_json(engine.share(said.dump()), "the first rank's prompts");
  if (flags_.enhancer.url.empty()) return;
  request_.prompts = heard.at(0).get<std::vector<std::string>>();
  request_.boxes = heard.at(1).get<std::string>();
}

RunFacts GenerateRun::draw() {
  const auto hooks = this->hooks();
  hooks.progress({.phase = Phase::kLoad});
  const Engine engine(*deployment_, hooks, Measure::kPeaks);
  display_.finish();
  if (deployment_->until_met) take_shares(engine);
  share_seed(engine);
  if (is_launched()) share_tiling(engine);
  if (is_launched()) share_prompts(engine);
  settings_ = engine.settle(request_, {});
  display_.expect_pictures(settings_.num_pictures());
  if (is_first_ && flags_.verbosity == Verbosity::kVerbose) tell_choices(engine.loaded().dtype);
  const auto record = flags_.dump.empty() ? RecordTensors::kNo : RecordTensors::kYes;
  auto facts = engine.generate(request_, hooks, {.record = record}).facts;
  display_.finish();
  if (is_first_ && !flags_.dump.empty()) {
    const auto bytes = write_safetensors(facts.recording);
    const auto whole = signals_.delay_exit();
    write_file(flags_.dump, bytes);
  }
  return facts;
}

// Each process has drawn one: the first rank's counts. One that was given a seed keeps it: they are
// compared.
void GenerateRun::share_seed(const Engine& engine) {
  const auto mine = std::to_string(request_.seed);
  const auto heard = is_launched() ? engine.share(mine) : mine;
  if (!flags_.is_seed_random) return;
  request_.seed = std::stoull(heard);
  if (is_first_) display_.say(text_of("seed ", request_.seed));
}

// Each process has planned it for memory of its own; all decode what the first one planned. What
// was asked for stays, and is compared.
void GenerateRun::share_tiling(const Engine& engine) {
  const auto heard = std::stoi(engine.share(std::to_string(int(request_.vae_tiling))));
  if (flags_.request.vae_tiling == VaeTiling::kAuto) request_.vae_tiling = VaeTiling(heard);
}

void GenerateRun::save(const Picture& picture) {
  const auto number = int(saved_.size());
  if (number == 0 && is_laid_on_white(files_->form(), picture.alpha)) warn(kLaidOnWhite);
  const auto drawn = number / settings_.returned_frames();
  const auto original =
      originals_.empty() ? "" : originals_[std::size_t(drawn / settings_.num_images)];
  const auto text = with_original_prompt(
      text_of_picture(picture, settings_.prompt_of(drawn), settings_, options(), inputs_),
      original);
  if (number == 0 && is_text_cut(files_->form(), text)) warn(kTextCut);
  const auto file =
      encoded(files_->form(), picture.width, picture.height, picture.rgb, text, picture.alpha);
  const auto path = [&] {
    const auto whole = signals_.delay_exit();
    return files_->write(number, file);
  }();
  saved_.push_back(
      {.path = path, .prompt = picture.prompt, .seed = picture.seed, .original_prompt = original});
  if (flags_.json || files_->is_standard_output()) return;
  display_.clear();
  print(path.string() + "\n");
}

void GenerateRun::tell_choices(at::ScalarType dtype) {
  display_.say(text_of(dtype_name(dtype), " on ", list_of_devices(options()), " with ",
                       plural(threads(), "thread"), ", model ", options().model.string()));
  display_.say(text_of(settings_.width, "x", settings_.height, ", ",
                       plural(settings_.steps, "step"), ", guidance ", settings_.guidance,
                       ", seed ", settings_.seed, ", ", settings_.max_sequence_length,
                       " text tokens, batches of ", settings_.batch_size));
}

void GenerateRun::report(const RunFacts& facts) const {
  print(report_json({.options = options(),
                     .facts = facts,
                     .program_began = began_,
                     .pictures = saved_,
                     .inputs = inputs_,
                     .warnings = warnings_,
                     .threads = threads(),
                     .memory_plan = deployment_->memory_plan,
                     .measured_flops = deployment_->measured_flops}));
}

}  // namespace

int generate(const GenerateFlags& flags, PhaseLog::Clock::time_point program_began) {
  // Prompts and pictures are read before signals are blocked: Ctrl-C must end a wait for standard
  // input or a pipe at once.
  auto request = with_prompts(flags);
  auto pictures = read_input_pictures(flags.pictures);
  GenerateRun run(flags, std::move(request), std::move(pictures), program_began);
  run.prepare();
  return run.run();
}

}  // namespace braid
