# A scripted agent: it does what an agent program would do in a run, and reports the end of it as all of them must.
echo "reading what set this run off: $LAMP_TRIGGER_FILE"
lamps=$(ls "$LAMP_CITY/agents" | grep -c '\.sh$')
echo "counting the lamps: $lamps"
lamp run complete --outcome succeeded --citation agents \
  --summary "Looked after **$lamps** lamps of the city; all of them burn."
