// Names as in the models' own code, diffusers' and ComfyUI's. The more special row comes first.
#include "models/kinds/file_marks.h"

namespace braid {
namespace {

FileMarks model(const char* name, std::vector<const char*> any,
                std::vector<const char*> with = {}) {
  return {{FileRole::kModel, name}, std::move(any), std::move(with)};
}

// One that Braid runs.
FileMarks own(const char* family, const char* name, std::vector<const char*> any,
              std::vector<const char*> with = {}) {
  return {{FileRole::kModel, name, family}, std::move(any), std::move(with)};
}

FileMarks part(FileRole role, const char* name, std::vector<const char*> any,
               std::vector<const char*> with = {}) {
  return {{role, name}, std::move(any), std::move(with)};
}

// Files that change a model, or look at pictures for it.
void add_additions(std::vector<FileMarks>& rows) {
  constexpr auto kOther = FileRole::kOther, kNet = FileRole::kControlNet;
  rows.insert(
      rows.end(),
      {part(kOther, "an IP-Adapter", {"ip_adapter.", "ip_adapter_proj_model.", "image_proj."}),
       part(kOther, "a PuLID adapter", {"pulid_ca.", "pulid_encoder."}),
       part(FileRole::kRedux, "FLUX.1 Redux's embedder of pictures",
            {"^redux_up.", "^redux_down."}),
       part(kOther, "an embedding of words (textual inversion)",
            {"^emb_params", "^string_to_param", "^string_to_token"}),
       part(kOther, "a T2I-Adapter", {"^adapter.body.", "^body.0.block1."}),
       part(kOther, "an AnimateDiff motion module", {"motion_modules."}),
       part(kOther, "an upscaler",
            {"^conv_first.", "^body.0.rdb1.", "^model.1.sub.0.", "^layers.0.residual_group."}),
       part(kNet, "a Z-Image ControlNet",
            {"control_all_x_embedder.", "control_layers.", "control_noise_refiner."}),
       part(kNet, "a ControlNet of Stable Diffusion",
            {"control_model.", "controlnet_cond_embedding.", "controlnet_down_blocks.",
             "zero_convs."}),
       part(kNet, "a ControlNet of XLabs", {"^input_hint_block."}),
       part(kNet, "a ControlNet",
            {"controlnet_blocks.", "controlnet_single_blocks.", "controlnet_x_embedder.",
             "controlnet_mode_embedder."})});
}

void add_own_models(std::vector<FileMarks>& rows) {
  rows.insert(
      rows.end(),
      {own("FLUX.2", "a FLUX.2 transformer", {"single_stream_modulation."}),
       own("FLUX.3", "a FLUX.3 transformer", {"^txt_mode_blocks.", "early_stream_modulations."}),
       own("JoyAI-Image-Edit", "a JoyAI-Image-Edit transformer",
           {"img_mod.modulate_table", "txt_mod.modulate_table"}),
       own("Krea 2", "a Krea 2 transformer", {"^txtfusion.", "^text_fusion."}),
       own("Qwen-Image", "a Qwen-Image transformer",
           {"img_mod.1.", "txt_mod.1.", "img_mod.lin.", "^txt_norm."},
           {"^transformer_blocks.", "^txt_norm."}),
       own("Qwen-Image-2.1", "a Qwen-Image-2.1 transformer", {"txt_in.text_norm."}),
       model("a Z-Image Omni transformer",
             {"siglip_embedder.", "siglip_refiner.", "siglip_pad_token"}),
       own("Z-Image", "a Z-Image transformer", {"x_pad_token", "cap_pad_token"})});
}

void add_transformers(std::vector<FileMarks>& rows) {
  rows.insert(
      rows.end(),
      {model("a FLUX.3 transformer", {"content_mode_blocks.", "mode_blocks.", "txt_mode_blocks."}),
       model("a Chroma Radiance model", {"nerf_blocks.", "nerf_image_embedder."}),
       model("a Chroma model", {"distilled_guidance_layer."}),
       model("a HiDream model", {"double_stream_blocks.", "caption_projection.0.linear."}),
       model("a HunyuanVideo 1.5 or HunyuanImage 2.1 model",
             {"byt5_in.", "context_embedder_2.", "vision_in."}),
       model("a HunyuanVideo model",
             {"individual_token_refiner.", "context_embedder.token_refiner.", "refiner_blocks."}),
       model("a HunyuanDiT model", {"mlp_t5.", "text_states_proj.", "style_embedder."}),
       model("a Hunyuan3D model", {"^latent_in."}),
       model("an OmniGen2 model", {"ref_image_patch_embedder.", "image_index_embedding"}),
       model("a Lumina 2 model", {"^time_caption_embed.", "^noise_refiner.", "^context_refiner."}),
       model("a Stable Diffusion 3 (SD3, SD3.5) model", {"^joint_blocks."}),
       model("an AuraFlow model",
             {"^cond_seq_linear.", "^joint_transformer_blocks.", "^double_layers."}),
       model("a Stable Diffusion 3 (SD3, SD3.5) model", {"^pos_embed.proj."},
             {"^time_text_embed."}),
       model("a Kandinsky 5 model", {"^visual_transformer_blocks.", "^text_transformer_blocks."}),
       model("a PixArt model", {"^t_block.", "^y_embedder.", "^pos_embed.proj."},
             {"^t_block.", "^y_embedder.y_embedding", "^adaln_single."}),
       model("a Sana model", {"^caption_norm.", "ff.conv_inverted.", "glumb_conv."}),
       model("an LTX-Video model", {"^patchify_proj.", "^audio_patchify_proj.", "^adaln_single.",
                                    "av_ca_video_scale_shift_adaln_single."}),
       model("a Mochi model", {"^t5_y_embedder.", "^t5_yproj.", "mod_y."}),
       model("a CogVideoX model", {"^patch_embed.text_proj."}),
       model("an Anima model", {"llm_adapter."}),
       model("a Cosmos model", {"^blocks.block0.", "^x_embedder.proj.1.", "^t_embedding_norm."}),
       model("a Wan model", {"^head.modulation", "^vace_blocks.", "cross_attn.",
                             "^patch_embedding.", "^condition_embedder.", "^text_embedding."}),
       model("a Stable Cascade model", {"^clip_txt_mapper.", "^clip_txt_pooled_mapper.", "^clf."}),
       model("a Stable Audio model", {"preprocess_conv.", "^to_cond_embed."}),
       model("an ACE-Step model", {"^genre_embedder.", "^lyric_embs.", "^lyric_encoder."}),
       model("a Wuerstchen or Stable Cascade model", {"channelwise."})});
}

// These rows stand after all others that have some of these names, too.
void add_common_models(std::vector<FileMarks>& rows) {
  rows.insert(rows.end(),
              {own("FLUX.1", "a FLUX.1 transformer",
                   {"^double_blocks.", "^single_blocks.", "^single_transformer_blocks."}),
               model("a Stable Diffusion model (1.5, 2 or XL: SD1.5, SD2, SDXL)",
                     {"^input_blocks.", "^output_blocks.", "^middle_block.", "^label_emb."}),
               model("a Stable Diffusion model (1.5, 2 or XL: SD1.5, SD2, SDXL)",
                     {"^down_blocks.", "^up_blocks.", "^mid_block."},
                     {"^conv_in.", "^time_embedding.", "^add_embedding.", "^up_blocks."})});
}

void add_parts(std::vector<FileMarks>& rows) {
  constexpr auto kText = FileRole::kTextEncoder, kVae = FileRole::kAutoencoder;
  rows.insert(
      rows.end(),
      {part(kVae, "Wan's autoencoder",
            {"^decoder.middle.", "^decoder.upsamples.", "^decoder.head.", "^encoder.downsamples.",
             "time_conv."}),
       part(kVae, "a small autoencoder for previews (TAESD)",
            {"taesd_decoder.", "taesd_encoder.", "^decoder.layers.", "^encoder.layers.0.conv.",
             "^3.conv.0."}),
       part(kVae, "an autoencoder",
            {"^first_stage_model.", "^vae.", "^encoder.conv_in.", "^decoder.conv_in.",
             "^encoder.down.", "^decoder.up.", "^decoder.mid.", "^encoder.mid.",
             "^encoder.down_blocks.", "^decoder.up_blocks.", "^decoder.mid_block.", "^quant_conv.",
             "^post_quant_conv.", "^decoder.conv_out.", "^encoder.conv_out."}),
       part(kText, "a T5 text encoder", {"SelfAttention.", "^shared.", "^enc.blk."}),
       part(FileRole::kOther, "a vision encoder", {"^embeddings.patch_embedding."}),
       part(kText, "a CLIP text encoder",
            {"^text_model.", "text_model.embeddings.", "text_model.encoder.", "^text_projection",
             "transformer.resblocks.0.", "^token_embedding.", "^embeddings.token_embedding.",
             "^encoder.layers.0."},
            {"text_model.", "^token_embedding.", "^positional_embedding", "transformer.text_model.",
             "^embeddings.token_embedding.", "^encoder.layers.0.", "^final_layer_norm."}),
       part(FileRole::kOther, "a vision encoder",
            {"^vision_model.", "^visual.transformer.", "^v.blk."}),
       part(kText, "a text encoder (CLIP)", {"transformer.resblocks."}),
       part(kText, "a language model of Gemma's kind",
            {"pre_feedforward_layernorm.", "post_feedforward_layernorm.", "post_ffw_norm."}),
       part(kText, "a language model of Qwen3's kind", {"self_attn.q_norm.", "attn_q_norm."}),
       part(kText, "a language model of Qwen2's kind", {"self_attn.q_proj.bias", "attn_q.bias"}),
       part(kText, "a language model",
            {"self_attn.q_proj.", "embed_tokens.", "^token_embd.", "^blk.0.", "^lm_head."})});
}

}  // namespace

const std::vector<FileMarks>& file_marks() {
  static const auto kRows = [] {
    std::vector<FileMarks> rows;
    add_additions(rows);
    add_own_models(rows);
    add_transformers(rows);
    add_common_models(rows);
    add_parts(rows);
    return rows;
  }();
  return kRows;
}

}  // namespace braid
