/* SPDX-License-Identifier: MIT */
/* What the files that read mixes share; nobody else includes this. */
#ifndef GP_SIM_MIX_STATE_H
#define GP_SIM_MIX_STATE_H

#include "sim/mix.h"
#include "sim/kernels.h"

#define MIX_NAME_SIZE     48u
#define MIX_VALUE_SIZE    512u
#define MIX_PARAMETER_MAX 16u
#define MIX_SEQUENCE_MAX  256u
#define MIX_WORD_MAX      24u
#define MIX_KEY_MAX       64u /* different keys of one section */

enum mix_section { MIX_NO_SECTION, MIX_MIX, MIX_PARAMETERS, MIX_SEQUENCE, MIX_CLIENT, MIX_DISB };

struct mix_parameter {
	char name[MIX_NAME_SIZE], value[MIX_NAME_SIZE];
};

/* A client section under construction: expanded into `count` clients when the section ends. */
struct mix_client {
	struct gp_work_client work;
	char name[MIX_NAME_SIZE];
	char sequence_name[MIX_NAME_SIZE]; /* empty: its own steps */
	uint32_t own_sequence;             /* or UINT32_MAX */
	uint32_t count, line;
	uint64_t stagger_ns;
	uint32_t load_permille; /* 0: not given as load */
	char replay[MIX_VALUE_SIZE], arrivals[MIX_VALUE_SIZE];
	uint32_t speed_milli; /* arrivals come so many times faster, in thousandths */
	bool one_device_each, all_devices, back_to_back;
	bool has_arrival, has_kind;
	const char *rate_key; /* rate, period or load: which of them was given; NULL: none */
	char service_key[16]; /* the first key that only a service has; empty: none */
};

struct mix_parser {
	const struct gp_mix_options *options;
	struct gp_workload *workload;
	char file_name[4096];
	char folder[4096]; /* where the files a mix names are looked for; empty: the data folder only */
	char title[160];
	enum mix_section section;
	uint32_t line; /* last seen */
	uint32_t key_count;
	char keys[MIX_KEY_MAX][MIX_NAME_SIZE]; /* of the current section */
	uint32_t parameter_count;
	struct mix_parameter parameters[MIX_PARAMETER_MAX];
	uint32_t sequence_count;
	struct {
		char name[MIX_NAME_SIZE];
		uint32_t index;
	} sequences[MIX_SEQUENCE_MAX];
	uint32_t current_sequence;
	/* How kernel lists of the current sequence are read. */
	char list_device[MIX_NAME_SIZE];
	uint32_t list_places;
	uint32_t list_repeat;
	struct mix_client client;
	struct {
		char file[MIX_VALUE_SIZE];
		int32_t realtime, best_effort;
		uint32_t line, model_count;
		struct {
			char name[MIX_NAME_SIZE], list[MIX_NAME_SIZE];
		} models[32];
	} disb;
};

/* A kernel list, and the device its times were measured on. */
struct mix_list {
	const struct gp_trace_kernels *kernels;
	const struct gp_desc *measured_on; /* NULL: the simulated one */
	uint32_t places;                   /* workgroups that fit at once there; 0: from the description */
};

/* mix_step.c */
int gp_mix_step_parse(struct mix_parser *parser, uint32_t sequence, const char *value, struct gp_error *error);
/* "12", "40%", "yes": what a mix writes; what names the value in the sentence. */
int gp_mix_parse_permille(const char *text, const char *what, uint32_t max, uint32_t *ret_permille,
			  struct gp_error *error);
int gp_mix_parse_bool(const char *text, const char *what, bool *ret_value, struct gp_error *error);
uint32_t gp_mix_split(char *text, char **words, uint32_t word_max);

/* mix_list.c */
int gp_mix_list_append(struct gp_workload *workload, uint32_t sequence, const struct mix_list *list,
		       const struct gp_desc *desc, struct gp_error *error);
int gp_mix_list_load(struct mix_parser *parser, uint32_t sequence, const char *file, struct gp_error *error);
int gp_mix_model_load(struct mix_parser *parser, uint32_t sequence, const char *model, struct gp_error *error);
int gp_mix_find_file(const struct mix_parser *parser, const char *name, char *ret_path, size_t path_size,
		     struct gp_error *error);
/* Device time one request needs: its kernels' workgroups x time over what the device holds at once, gaps not
 * counted. */
uint64_t gp_mix_request_ns(const struct gp_workload *workload, uint32_t sequence, const struct gp_desc *desc);

/* mix_client.c */
int gp_mix_client_begin(struct mix_parser *parser, const char *name, uint32_t line, struct gp_error *error);
int gp_mix_client_set(struct mix_parser *parser, const char *name, const char *value, struct gp_error *error);
int gp_mix_client_end(struct mix_parser *parser, struct gp_error *error);

/* mix_disb.c, mix_replay.c */
int gp_mix_disb_set(struct mix_parser *parser, const char *name, const char *value, struct gp_error *error);
int gp_mix_disb_end(struct mix_parser *parser, struct gp_error *error);
int gp_mix_replay(struct gp_workload *workload, struct gp_work_client *client, const struct gp_trace_kernels *kernels,
		  const struct gp_desc *desc, bool back_to_back, struct gp_error *error);
int gp_mix_arrivals(struct gp_work_client *client, const char *path, uint32_t speed_milli, uint32_t step_count,
		    struct gp_error *error);

#endif
