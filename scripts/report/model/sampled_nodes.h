/* Adds samples to the paths of the model. */
#ifndef REPORT_MODEL_SAMPLED_NODES_H
#define REPORT_MODEL_SAMPLED_NODES_H

struct build;
struct model;

/* Adds the samples of @build's file, whose nodes have their paths, each to one path. */
void sampled_nodes_add(struct build *build);
/* A sample of a path is also a sample of the paths above it; once, after all files. */
void sampled_nodes_add_up(struct model *model);

#endif
