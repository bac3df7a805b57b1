#include "pipeline/deployment/same_run.h"

#include <c10/core/ScalarType.h>

#include <algorithm>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <span>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text_stream.h"
#include "comm/texts.h"
#include "pipeline/files/model_files.h"
#include "pipeline/planner/grid.h"
#include "weights/sources/identity.h"

namespace braid {
namespace {

constexpr std::size_t kSample = 64;  // bytes from the middle of each tensor
constexpr char kCoded = '#';         // begins a value that tells a reader nothing

template <class... Values>
std::string exact(const Values&... values) {
  TextWriter out;
  out << std::setprecision(15);
  (out << ... << values);
  return out.str();
}

std::string exact_list(const std::vector<double>& values) {
  std::string list;
  for (const auto value : values) list += exact(value, " ");
  return list;
}

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return digest(std::as_bytes(std::span(values)));
}

// A line for each fact: its name, then its value. All ranks have the same names in the same order.
class Facts {
 public:
  template <class... Values>
  void add(const std::string& name, const Values&... values) {
    lines_ += name + '\t' + exact(values...) + '\n';
  }
  void add_coded(const std::string& name, const std::string& value) {
    lines_ += name + '\t' + kCoded + digest(std::as_bytes(std::span(value))) + '\n';
  }
  const std::string& lines() const { return lines_; }

 private:
  std::string lines_;
};

[[noreturn]] void refuse(const std::string& wish, std::size_t rank, const std::string& got,
                         const std::string& want) {
  const auto name = got.substr(0, got.find('\t'));
  const auto value_of = [](const std::string& line) { return line.substr(line.find('\t') + 1); };
  const auto difference =
      value_of(got).starts_with(kCoded)
          ? text_of("differs from rank 0 in the ", name)
          : text_of("has ", name, " ", value_of(got), " and rank 0 has ", value_of(want));
  throw InputError(text_of("the ranks should ", wish, ", but rank ", rank, " ", difference));
}

void check_same(const Group& world, const Facts& mine,
                const std::string& wish = "draw the same picture") {
  world.await();  // ranks read files for unequal times
  const auto all = all_gather_texts(world, mine.lines());
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    TextReader first(all.front()), other(all[rank]);
    for (std::string want, got; std::getline(first, want) && std::getline(other, got);)
      if (want != got) refuse(wish, rank, got, want);
  }
}

bool are_processes(const Group& world, const Deployment& d) {
  return d.options.layout.ranks == Ranks::kProcesses && world.size() > 1;
}

void add_sample(const StoredTensor& stored, std::string& samples) {
  const auto& entry = stored.entry;
  samples += text_of(entry.name, " ", at::IntArrayRef(entry.shape), " ");
  const auto size = std::min<std::uint64_t>(kSample, entry.size);
  const auto middle = stored.file->bytes().subspan(entry.begin + (entry.size - size) / 2, size);
  samples.append(reinterpret_cast<const char*>(middle.data()), middle.size());
}

void add_weights(const ModelFiles& files, const Family& family, Facts& facts) {
  for (const auto& part : family.description().parts) {
    const auto checkpoint = files.open(part.folder);
    std::string samples;
    for (const auto& [name, stored] : checkpoint.tensors()) add_sample(stored, samples);
    facts.add_coded("weights of the " + part.folder, samples);
  }
}

// What two machines may write differently without meaning another model.
constexpr const char* kNotes[] = {"_diffusers_version", "_name_or_path", "transformers_version"};

std::string config_in(const std::filesystem::path& file) {
  if (!is_file(file)) return "none";
  auto json = read_json(file);
  for (const auto* const note : kNotes)
    if (json.is_object()) json.erase(note);
  return json.dump();
}

void add_configs(const ModelFiles& files, const Family& family, Facts& facts) {
  for (const auto& part : family.description().parts)
    facts.add_coded("configuration of the " + part.folder, config_in(files.config_of(part.folder)));
  facts.add_coded("configuration of the scheduler",
                  config_in(files.folder / "scheduler" / "scheduler_config.json"));
  facts.add_coded("model_index.json", config_in(files.folder / "model_index.json"));
}

void add_adapters(const std::vector<AppliedAdapter>& adapters, Facts& facts) {
  std::string samples;
  for (const auto& [file, scale] : adapters) {
    samples += exact("at ", scale, " ");
    for (const auto& [name, module] : file->modules())
      for (const auto& [role, stored] : module.tensors) add_sample(stored, samples);
  }
  facts.add_coded("LoRAs", samples);
}

// In this function and those below, all members of a structure are named: one that is added later
// does not compile before somebody has decided whether ranks may differ in it.
void add_layout(const Layout& layout, Facts& facts) {
  const auto& [fit, tp, ring, ulysses, cfg, dp, pp, layer_split, shares, shares_fit, modulation,
               text, decode, ring_form, collectives, deadline, ranks] = layout;
  facts.add_coded("modulation under tensor parallelism", text_of(int(modulation)));
  facts.add_coded("ranks of the text encoders", text_of(int(text)));
  facts.add_coded("ranks that decode", text_of(int(decode)));
  facts.add_coded("form of the ring", text_of(int(ring_form)));
  facts.add_coded("collectives", text_of(int(collectives)));
}

// Weights may lie elsewhere on each rank.
void add_memory(const Memory& memory, Facts& facts) {
  const auto& [quantize, quantize_text, keep_dense, offload, recorded_step, budget, preset, fit] =
      memory;
  std::string dense;
  for (const auto& layer : keep_dense) dense += layer + '\0';
  facts.add_coded("form of weights", text_of(int(quantize), " ", int(quantize_text)));
  facts.add_coded("layers that stay dense", dense);
}

void add_cache(const CacheOptions& cache, Facts& facts) {
  const auto& [mode, threshold, most_in_a_row, polynomial] = cache;
  facts.add_coded(
      "cache", exact(int(mode), " ", threshold, " ", most_in_a_row, " ", exact_list(polynomial)));
}

// Files are compared by what they hold, threads and streams change no picture.
void add_options(const PipelineOptions& options, Facts& facts) {
  const auto& [model, components, published, comfy, text_encoder_files, vae_file, controlnets,
               redux, adapters, adapter_mode, dtype, device, devices, threads, graphs, text_stream,
               layout, memory, cache, condition_cache] = options;
  facts.add("a number of ControlNets of", controlnets.size());
  facts.add("a number of Redux models of", redux.empty() ? 0 : 1);
  facts.add_coded("way of adding LoRAs", text_of(int(adapter_mode)));
  add_layout(layout, facts);
  add_memory(memory, facts);
  add_cache(cache, facts);
}

void add_prompts(const Request& request, const Settings& s, Facts& facts) {
  std::string prompts;
  for (const auto& prompt : s.prompts) prompts += prompt.text + '\0' + prompt.second + '\0';
  facts.add_coded("prompts", prompts + request.boxes);
  facts.add_coded("negative prompt",
                  s.negative ? "one: " + s.negative->text + '\0' + s.negative->second : "none");
  facts.add("max_sequence_length", s.max_sequence_length);
}

void add_sampling(const Settings& s, Facts& facts) {
  const auto& [sampler, schedule, sigmas, base_sigmas, shift] = s.sampling;
  facts.add("steps", s.steps);
  facts.add_coded("sampler", text_of(sampler ? int(*sampler) : -1));
  facts.add_coded("schedule", text_of(schedule ? int(*schedule) : -1, " ", s.num_steps));
  facts.add_coded("sigmas", exact_list(sigmas) + "base: " + exact_list(base_sigmas));
  facts.add_coded("shift", shift ? exact(*shift) : "the model's");
  facts.add_coded("strength", s.strength ? exact(*s.strength) : "none");
}

void add_guidance(const Settings& s, Facts& facts) {
  const auto& [from, scale, rescale, norm_cap, kept_channels, until, way_from] = s.true_guidance;
  facts.add("guidance", s.guidance);
  facts.add("true guidance", scale);
  facts.add("guidance rescale", rescale);
  facts.add_coded("form of true guidance",
                  exact(int(from), " ", norm_cap, " ", kept_channels, " ", way_from));
  facts.add("true guidance until", until);
}

void add_pixels(const Pixels& pixels, std::string& text) {
  const auto& [width, height, rgb, alpha] = pixels;
  text += text_of(width, "x", height, " ", bytes_of(rgb), bytes_of(alpha), "\n");
}

void add_pictures(const PicturesIn& in, const Settings& s, Facts& facts) {
  const auto& [init, strength, mask, mask_blur, padding_crop, references, reference_scales,
               reference_cache, resolution, controls] = in;
  std::string start, seen, followed;
  for (const auto* const picture : {&init, &mask})
    if (*picture) add_pixels(**picture, start);
  for (const auto& reference : references) add_pixels(reference, seen);
  for (const auto& control : controls) add_pixels(control.picture, followed);
  for (const auto& f : s.followed)
    followed += exact(f.net, " ", f.scale, " ", f.from, " ", f.to, " ", f.mode.value_or(-1), "\n");
  facts.add_coded("initial picture or mask",
                  exact(start, mask_blur, " ", padding_crop.value_or(-1)));
  facts.add_coded("references", exact(seen, exact_list(s.reference_scales), int(reference_cache),
                                      " ", resolution.value_or(0)));
  facts.add_coded("control pictures", followed);
}

std::string initial(const std::optional<Latents>& latents) {
  if (!latents) return "drawn";
  return text_of(at::IntArrayRef(latents->shape), " ", bytes_of(latents->values));
}

void add_request(const Request& request, const Settings& s, Facts& facts) {
  const auto& [prompts, prompts_2, negative, negative_2, boxes, true_cfg, guidance_rescale,
               cfg_norm_cap, cfg_normalize, cfg_until, width, height, frames, layers, steps,
               sampling, guidance, max_sequence_length, seed, num_images, batch_size, vae_tiling,
               latents, output, pictures, adapters] = request;
  facts.add("size", s.requested_size().width, "x", s.requested_size().height);
  facts.add("frames", s.frames);
  facts.add("pictures", s.num_pictures(), " in batches of ", batch_size);
  facts.add("seed", seed);
  add_prompts(request, s, facts);
  add_sampling(s, facts);
  add_guidance(s, facts);
  add_pictures(pictures, s, facts);
  facts.add_coded("initial latents", initial(latents));
  facts.add_coded("tiling of the autoencoder", text_of(int(vae_tiling)));
  facts.add_coded("form of the result", text_of(int(output)));
}

}  // namespace

void check_same_command(const Group& world, const Deployment& d) {
  if (!are_processes(world, d)) return;
  Facts facts;
  facts.add("Braid", version());
  facts.add("the command", d.command);
  check_same(world, facts, "run the same command");
}

void check_same_model(const Group& world, const Deployment& d) {
  if (!are_processes(world, d)) return;
  Facts facts;
  facts.add("the family", d.family->description().family);
  facts.add("the layout", layout_name(d.degrees()));
  facts.add_coded("way of choosing shares", d.until_met ? "by measured speed" : "as asked");
  facts.add("dtype", c10::getDtypeNames(d.dtype).first);
  add_options(d.options, facts);
  if (d.files) {
    add_adapters(d.files->adapters, facts);
    add_configs(*d.files, *d.family, facts);
    add_weights(*d.files, *d.family, facts);
  }
  check_same(world, facts);
}

void check_same_request(const Group& world, const Deployment& d, const Request& request,
                        const Settings& settings, const std::vector<AppliedAdapter>& adapters) {
  if (!are_processes(world, d)) return;
  Facts facts;
  add_request(request, settings, facts);
  add_adapters(adapters, facts);
  check_same(world, facts);
}

}  // namespace braid
